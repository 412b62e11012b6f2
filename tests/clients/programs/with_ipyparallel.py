"""ipyparallel: controller and engines as jobs, the engines under srun; they are interrupted by scancel, and stopped."""

import os
import signal
import sys
import time


def main(folder: str) -> None:
    os.environ["IPYTHONDIR"] = folder
    import ipyparallel

    with ipyparallel.Cluster(engines="slurm", controller="slurm", n=2) as client:
        client.wait_for_engines(2, timeout=120)
        engines = client[:]
        assert sorted(engines.apply_sync(os.getenv, "SLURM_PROCID")) == ["0", "1"]
        sleeping = engines.apply_async(time.sleep, 300)
        time.sleep(1)
        client.cluster.signal_engines_sync(signal.SIGINT)
        interrupted = sleeping.exception(timeout=60)
        assert "KeyboardInterrupt" in str(interrupted), f"the engines went on sleeping: {interrupted}"
    print("ipyparallel is content")


if __name__ == "__main__":
    main(sys.argv[1])
