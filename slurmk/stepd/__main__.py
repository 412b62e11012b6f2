"""``python3 stepd.pyz zygote|node|pod|srun|salloc|sattach|sbcast|end-groups``."""

import sys


def main(arguments: "list[str]") -> int:
    """Run the part that the first word names."""
    role = arguments[0] if arguments else ""
    if role == "srun":
        from slurmk.stepd.srun import main as run
    elif role == "salloc":
        from slurmk.stepd.salloc import main as run
    elif role == "sattach":
        from slurmk.stepd.sattach import main as run
    elif role == "sbcast":
        from slurmk.stepd.sbcast import main as run
    elif role == "zygote":
        from slurmk.stepd.zygote import main as run
    elif role == "node":
        from slurmk.stepd.node import main as run
    elif role == "pod":
        from slurmk.stepd.pod import main as run
    elif role == "end-groups":
        from slurmk.stepd.cgroup import main as run
    else:
        print(
            "usage: stepd zygote | node FILE | pod | srun | salloc SETTINGS COMMAND | sattach SETTINGS | sbcast SETTINGS"
            " | end-groups FILE",
            file=sys.stderr,
        )
        return 2
    return run(arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
