"""``python3 stepd.pyz zygote|node|srun``."""

import sys

if __name__ == "__main__":
    role = sys.argv[1] if len(sys.argv) > 1 else ""
    if role == "srun":
        from slurmk.stepd.srun import main
    elif role == "zygote":
        from slurmk.stepd.zygote import main
    elif role == "node":
        from slurmk.stepd.node import main
    else:
        sys.exit("usage: stepd zygote | node | srun")
    sys.exit(main(sys.argv[2:]))
