"""libensemble: its manager runs in a job, reads which nodes that has, and gives each of its workers' tasks some by srun."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """#!/bin/sh
echo $SLURM_NTASKS $SLURM_STEP_NODELIST
"""


def ensemble(folder: str) -> None:
    import numpy as np
    from libensemble import Ensemble
    from libensemble.executors.executor import Executor
    from libensemble.executors.mpi_executor import MPIExecutor
    from libensemble.gen_funcs.sampling import latin_hypercube_sample
    from libensemble.specs import ExitCriteria, GenSpecs, LibeSpecs, SimSpecs

    os.chdir(folder)
    executor = MPIExecutor()
    executor.register_app(full_path=f"{folder}/told.sh", app_name="told")
    lines: list[str] = []

    def simulate(given: "np.ndarray", _: "object", specifications: "object", info: "object") -> "np.ndarray":
        task = Executor.executor.submit(app_name="told", num_procs=2, wait_on_start=True)
        task.wait(timeout=60)
        lines.append(f"{task.state} {task.runline.split()[0]}")
        return np.ones(1, dtype=[("f", float)])

    bounds = {"initial_batch_size": 4, "gen_batch_size": 4, "lb": np.array([0]), "ub": np.array([1])}
    experiment = Ensemble(
        libE_specs=LibeSpecs(comms="threads", nworkers=3, gen_on_manager=False),
        sim_specs=SimSpecs(sim_f=simulate, inputs=["x"], out=[("f", float)]),
        gen_specs=GenSpecs(gen_f=latin_hypercube_sample, outputs=[("x", float, (1,))], user=bounds),
        exit_criteria=ExitCriteria(sim_max=4),
        executor=executor,
    )
    experiment.add_random_streams()
    _, _, flag = experiment.run()
    (Path(folder) / "lines").write_text(f"{flag}\n" + "\n".join(sorted(lines)))


def main(folder: str) -> None:
    work = Path(folder)
    (work / "told.sh").write_text(SCRIPT)
    (work / "told.sh").chmod(0o755)
    wants = ["-N2", "--ntasks-per-node=4", "-p", "cpu", "-t", "5", "-o", f"{folder}/out"]
    command = f"{sys.executable} {Path(__file__).absolute()} {folder} here"
    done = subprocess.run(["sbatch", "--wait", *wants, "--wrap", command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + (work / "out").read_text()
    assert (work / "lines").read_text().split("\n") == ["0", *["FINISHED srun"] * 4], (work / "out").read_text()
    print("libensemble is content")


if __name__ == "__main__":
    (ensemble if sys.argv[2:] else main)(sys.argv[1])
