"""dask-jobqueue: workers as jobs, work on them, more and fewer of them."""

import sys
import time

from dask.distributed import Client
from dask_jobqueue import SLURMCluster


def main(folder: str) -> None:
    cluster = SLURMCluster(
        queue="debug",
        cores=1,
        processes=1,
        memory="500MB",
        walltime="00:05:00",
        job_extra_directives=["--comment=dask"],
        log_directory=f"{folder}/logs",
        local_directory=folder,
        death_timeout=60,
        interface="lo",
        scheduler_options={"dashboard_address": None},
        worker_extra_args=["--no-dashboard"],
    )
    with cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        assert client.submit(sum, range(100)).result(timeout=60) == 4950
        assert sum(client.gather(client.map(lambda number: number * number, range(10)))) == 285
        cluster.scale(jobs=1)
        end = time.monotonic() + 60
        while len(client.scheduler_info(n_workers=-1)["workers"]) > 1:
            assert time.monotonic() < end, "the second worker did not go"
            time.sleep(0.2)
        assert client.submit(lambda: "still works").result(timeout=60) == "still works"
    print("dask-jobqueue is content")


if __name__ == "__main__":
    main(sys.argv[1])
