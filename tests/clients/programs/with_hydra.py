"""hydra's submitit launcher: a sweep over two values is an array of jobs, each with a folder and a configuration of its own."""

import os
import subprocess
import sys
from pathlib import Path

APP = """
import hydra, os
@hydra.main(version_base=None, config_path=None, config_name=None)
def app(cfg):
    print("value", cfg.value, "in", os.environ["SLURM_JOB_NAME"], os.environ["SLURM_ARRAY_TASK_ID"], flush=True)
    return cfg.value * 2
if __name__ == "__main__":
    app()
"""


def main(folder: str) -> None:
    work = Path(folder)
    (work / "app.py").write_text(APP)
    words = ["--multirun", "hydra/launcher=submitit_slurm", "+value=1,2", "hydra.launcher.timeout_min=5"]
    words += [
        "hydra.launcher.mem_gb=null",
        "hydra.launcher.cpus_per_task=1",
        "+hydra.launcher.additional_parameters={mem: 100M}",
        f"hydra.sweep.dir={work}/sweep",
    ]
    subprocess.run([sys.executable, "app.py", *words], cwd=work, check=True, env=dict(os.environ, HYDRA_FULL_ERROR="1"))
    told = sorted(path.read_text().strip() for path in (work / "sweep" / ".submitit").rglob("*_log.out"))
    lines = sorted(line for text in told for line in text.splitlines() if line.startswith("value"))
    assert lines == ["value 1 in app 0", "value 2 in app 1"], told
    print("hydra is content")


if __name__ == "__main__":
    main(sys.argv[1])
