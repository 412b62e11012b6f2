# ruff: noqa: E501
"""Submissions, and what a real Slurm 26.05.5 said to them: on a cluster with the reference's configuration, as root.

Each was run as ``sbatch --hold --parsable ARGUMENTS`` with ``--wrap=true``, or with the script ``s.sh`` where there is one,
in an otherwise empty environment. ``{0}`` stands for the job's id and ``{work}`` for the working directory. ``fields`` are
those of ``scontrol show job`` that differ from a submission without options (PLAIN); None: the field is not printed.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SubmissionCase:
    arguments: tuple[str, ...] = ()
    script: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    code: int = 0
    output: str = "{0}\n"
    errors: str = ""
    fields: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """sbatch's own arguments."""
        return ("--hold", "--parsable", *self.arguments, "--wrap=true" if self.script is None else "s.sh")

    @property
    def command(self) -> str:
        """For a shell."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, "sbatch", shlex.join(self.words)])


PLAIN: Mapping[str, str] = {
    "JobName": "wrap",
    "UserId": "root(0)",
    "GroupId": "root(0) MCS_label=N/A",
    "Priority": "0",
    "Nice": "0",
    "Account": "phys",
    "QOS": "normal",
    "JobState": "PENDING",
    "Dependency": "(null)",
    "Requeue": "1",
    "Restarts": "0",
    "BatchFlag": "1",
    "Reboot": "0",
    "ExitCode": "0:0",
    "TimeLimit": "00:10:00",
    "TimeMin": "N/A",
    "Deadline": "N/A",
    "SuspendTime": "None",
    "SecsPreSuspend": "0",
    "Partition": "debug",
    "ReqNodeList": "(null)",
    "ExcNodeList": "(null)",
    "NodeList": "",
    "NumNodes": "1-1",
    "NumCPUs": "1",
    "NumTasks": "1",
    "CPUs/Task": "1",
    "ReqB:S:C:T": "0:0:*:*",
    "ReqTRES": "cpu=1,mem=100M,node=1,billing=1",
    "AllocTRES": "(null)",
    "Socks/Node": "*",
    "NtasksPerN:B:S:C": "0:0:*:*",
    "CoreSpec": "*",
    "MinCPUsNode": "1",
    "MinMemoryCPU": "100M",
    "MinTmpDiskNode": "0",
    "Features": "(null)",
    "DelayBoot": "00:00:00",
    "OverSubscribe": "NO",
    "Exclusive": "NO",
    "Contiguous": "0",
    "Licenses": "(null)",
    "LicensesAlloc": "(null)",
    "Network": "(null)",
    "Command": "(null)",
    "WorkDir": "{work}",
    "StdErr": "",
    "StdIn": "/dev/null",
    "StdOut": "{work}/slurm-{0}.out",
}

SUBMISSIONS: tuple[SubmissionCase, ...] = (
    SubmissionCase(
        (
            "-t",
            "5",
        ),
        fields={"TimeLimit": "00:05:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "0",
        ),
        fields={"TimeLimit": "UNLIMITED"},
    ),
    SubmissionCase(
        (
            "-t",
            "5:30",
        ),
        fields={"TimeLimit": "00:06:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1:2:3",
        ),
        fields={"TimeLimit": "01:03:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1-0",
        ),
        fields={"TimeLimit": "1-00:00:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1-2",
        ),
        fields={"TimeLimit": "1-02:00:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1-2:3",
        ),
        fields={"TimeLimit": "1-02:03:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1-2:3:4",
        ),
        fields={"TimeLimit": "1-02:04:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "infinite",
        ),
        fields={"TimeLimit": "UNLIMITED"},
    ),
    SubmissionCase(
        (
            "-t",
            "UNLIMITED",
        ),
        fields={"TimeLimit": "UNLIMITED"},
    ),
    SubmissionCase(
        (
            "-t",
            "-1",
        ),
        fields={"TimeLimit": "UNLIMITED"},
    ),
    SubmissionCase(
        (
            "-t",
            "abc",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            "5:",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            "5m",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            "1:60",
        ),
        fields={"TimeLimit": "00:02:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1:2:3:4",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            "0:1",
        ),
        fields={"TimeLimit": "00:01:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1-",
        ),
        fields={"TimeLimit": "1-00:00:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "25:00:00",
        ),
        fields={"TimeLimit": "1-01:00:00"},
    ),
    SubmissionCase(
        (
            "-t",
            "1.5",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            "",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "-t",
            " 5",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --time specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "100",
        ),
        fields={"MinMemoryNode": "100M", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1G",
        ),
        fields={"ReqTRES": "cpu=1,mem=1G,node=1,billing=1", "MinMemoryNode": "1G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1g",
        ),
        fields={"ReqTRES": "cpu=1,mem=1G,node=1,billing=1", "MinMemoryNode": "1G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1.5G",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "0",
        ),
        fields={"ReqTRES": "cpu=1,mem=16000M,node=1,billing=1", "MinMemoryNode": "0", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "2900M",
        ),
        fields={"ReqTRES": "cpu=1,mem=2900M,node=1,billing=1", "MinMemoryNode": "2900M", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "5K",
        ),
        fields={"ReqTRES": "cpu=1,mem=1M,node=1,billing=1", "MinMemoryNode": "1M", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1T",
        ),
        fields={"ReqTRES": "cpu=1,mem=1T,node=1,billing=1", "MinMemoryNode": "1T", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1GB",
        ),
        fields={"ReqTRES": "cpu=1,mem=1G,node=1,billing=1", "MinMemoryNode": "1G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1gB",
        ),
        fields={"ReqTRES": "cpu=1,mem=1G,node=1,billing=1", "MinMemoryNode": "1G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "-5",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "abc",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "10X",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "1025K",
        ),
        fields={"ReqTRES": "cpu=1,mem=2M,node=1,billing=1", "MinMemoryNode": "2M", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "1P",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(
        (
            "--mem",
            "1536M",
        ),
        fields={"ReqTRES": "cpu=1,mem=1.50G,node=1,billing=1", "MinMemoryNode": "1.50G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "2049",
        ),
        fields={"ReqTRES": "cpu=1,mem=2049M,node=1,billing=1", "MinMemoryNode": "2049M", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "--mem",
            "",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem specification\n",
    ),
    SubmissionCase(("--mem-per-cpu=2G",), fields={"ReqTRES": "cpu=1,mem=2G,node=1,billing=1", "MinMemoryCPU": "2G"}),
    SubmissionCase(
        ("--mem-per-cpu=0",),
        fields={"ReqTRES": "cpu=1,mem=16000M,node=1,billing=1", "MinMemoryNode": "0", "MinMemoryCPU": None},
    ),
    SubmissionCase(("--mem-per-cpu=x",), code=255, output="", errors="sbatch: error: Invalid --mem-per-cpu specification\n"),
    SubmissionCase(
        (
            "--mem=1G",
            "--mem-per-cpu=1G",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
    ),
    SubmissionCase(
        (
            "--mem-per-cpu=1G",
            "--mem=2G",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
    ),
    SubmissionCase(
        (
            "-N",
            "1",
        )
    ),
    SubmissionCase(
        (
            "-N",
            "1-3",
        ),
        fields={"NumNodes": "1-3"},
    ),
    SubmissionCase(
        (
            "-N",
            "3-1",
        ),
        code=255,
        output="",
        errors="sbatch: error: Maximum node count 1 is less than minimum node count 3\n",
    ),
    SubmissionCase(
        (
            "-N",
            "abc",
        ),
        code=255,
        output="",
        errors='sbatch: error: "abc" is not a valid node count\n',
    ),
    SubmissionCase(
        (
            "-N",
            "1-",
        ),
        code=255,
        output="",
        errors="sbatch: error: Maximum node count -1 is less than minimum node count 1\n",
    ),
    SubmissionCase(
        (
            "-N",
            "-3",
        ),
        fields={"NumNodes": "1-3"},
    ),
    SubmissionCase(
        (
            "-N",
            "1-2-3",
        ),
        code=255,
        output="",
        errors='sbatch: error: "2-3" is not a valid node count\n',
    ),
    SubmissionCase(
        (
            "-N",
            "4-2",
        ),
        code=255,
        output="",
        errors="sbatch: error: Maximum node count 2 is less than minimum node count 4\n",
    ),
    SubmissionCase(
        (
            "-N",
            "99999999999",
        ),
        code=255,
        output="",
        errors='sbatch: error: "99999999999" is not a valid node count\n',
    ),
    SubmissionCase(
        (
            "-N",
            "1:3",
        ),
        code=255,
        output="",
        errors='sbatch: error: "1:3" is not a valid node count\n',
    ),
    SubmissionCase(
        (
            "-N",
            "",
        ),
        code=255,
        output="",
        errors='sbatch: error: "" is not a valid node count\n',
    ),
    SubmissionCase(
        (
            "-a",
            "0-3",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "0-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1,3,5",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1,3,5", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "0-9:2",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "0,2,4,6,8", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "0-9:2%3",
        ),
        fields={
            "ArrayJobId": "{0}",
            "ArrayTaskId": "0,2,4,6,8%3",
            "ArrayTaskThrottle": "3",
            "StdOut": "{work}/slurm-{0}_4294967294.out",
        },
    ),
    SubmissionCase(
        (
            "-a",
            "0-3%0",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "0-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "3-1",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "abc",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "1-",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "0-1001",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "1000",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1000", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1001",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "1,1,1",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "5-5",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "5", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1-3,2-4",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-4", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1-10:0",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "1-10:20",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "[1-3]",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1-3%",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1-3%a",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1-3,",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "1,,2",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-2", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "-1",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "1-3%2,5",
        ),
        fields={
            "ArrayJobId": "{0}",
            "ArrayTaskId": "1-3,5%2",
            "ArrayTaskThrottle": "2",
            "StdOut": "{work}/slurm-{0}_4294967294.out",
        },
    ),
    SubmissionCase(
        (
            "-a",
            "0x2",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid job array specification\n",
    ),
    SubmissionCase(
        (
            "-a",
            "08",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "8", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "0-12:2",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "0-12:2", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-a",
            "0-10:5,7",
        ),
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "0,5,7,10", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(
        (
            "-d",
            "singleton",
        ),
        fields={"Dependency": "singleton(unfulfilled)"},
    ),
    SubmissionCase(
        (
            "-d",
            "Singleton",
        ),
        fields={"Dependency": "singleton(unfulfilled)"},
    ),
    SubmissionCase(
        (
            "-d",
            "afterok",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "afterok:",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "afterok:abc",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "garbage",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "singleton:3",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "afterok:-1",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "afterok:0",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "afterok:99999999",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job dependency problem\n",
    ),
    SubmissionCase(
        (
            "-d",
            "",
        )
    ),
    SubmissionCase(
        (
            "-C",
            "a100",
        ),
        fields={"Features": "a100"},
    ),
    SubmissionCase(
        (
            "-C",
            "a100&nvlink",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100|cpu",
        ),
        fields={"Features": "a100|cpu"},
    ),
    SubmissionCase(
        (
            "-C",
            "[a100|cpu]",
        ),
        fields={"Features": "[a100|cpu]"},
    ),
    SubmissionCase(
        (
            "-C",
            "a100*2",
        ),
        fields={"Features": "a100*2"},
    ),
    SubmissionCase(
        (
            "-C",
            "[a100*1&cpu*2]",
        ),
        fields={"Features": "[a100*1&cpu*2]"},
    ),
    SubmissionCase(
        (
            "-C",
            "(a100|cpu)&ib",
        ),
        fields={"Features": "(a100|cpu)&ib"},
    ),
    SubmissionCase(
        (
            "-C",
            "!a100",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100,ib",
        ),
        fields={"Features": "a100&ib"},
    ),
    SubmissionCase(
        (
            "-C",
            "[a100",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100]",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "(a100",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "nope",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100*0",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100*x",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100&&ib",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100||cpu",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "((a100))",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a100|nope",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "a b",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "[a100&ib]",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "&",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "*",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid feature specification\n",
    ),
    SubmissionCase(
        (
            "-C",
            "ib&a100",
        ),
        fields={"Features": "ib&a100"},
    ),
    SubmissionCase(
        ("--gres=gpu:2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu:2"}
    ),
    SubmissionCase(
        ("--gres=gpu",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1", "TresPerNode": "gres/gpu"}
    ),
    SubmissionCase(
        ("--gres=gpu:a100",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1", "TresPerNode": "gres/gpu:a100"}
    ),
    SubmissionCase(
        ("--gres=gpu:a100:2",),
        fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu:a100:2"},
    ),
    SubmissionCase(
        ("--gres=foo:1",), code=1, output="", errors="sbatch: error: Invalid generic resource (gres) specification\n"
    ),
    SubmissionCase(("--gres=none",)),
    SubmissionCase(
        ("--gres=gpu=2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu=2"}
    ),
    SubmissionCase(
        ("--gres=gres/gpu:2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu:2"}
    ),
    SubmissionCase(
        ("--gres=gres:gpu:2",), code=1, output="", errors="sbatch: error: Invalid generic resource (gres) specification\n"
    ),
    SubmissionCase(
        ("--gres=cpu:2",), code=1, output="", errors="sbatch: error: Invalid generic resource (gres) specification\n"
    ),
    SubmissionCase(("--gpus=2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerJob": "gres/gpu:2"}),
    SubmissionCase(
        ("--gpus=a100:2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerJob": "gres/gpu:a100:2"}
    ),
    SubmissionCase(
        ("--gpus-per-node=2",), fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu:2"}
    ),
    SubmissionCase(
        ("--gpus-per-node=a100:2",),
        fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "TresPerNode": "gres/gpu:a100:2"},
    ),
    SubmissionCase(
        (
            "--gpus=2",
            "--cpus-per-gpu=2",
        ),
        fields={
            "NumCPUs": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "CpusPerTres": "gres/gpu:2",
            "TresPerJob": "gres/gpu:2",
        },
    ),
    SubmissionCase(
        (
            "--gpus=2",
            "--mem-per-gpu=2G",
        ),
        fields={
            "ReqTRES": "cpu=1,mem=4G,node=1,billing=1,gres/gpu=2",
            "MinMemoryTRES": "2G",
            "MemPerTres": "gres/gpu:2048",
            "TresPerJob": "gres/gpu:2",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        (
            "--gpus=4",
            "-N2",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2,gres/gpu=4",
            "TresPerJob": "gres/gpu:4",
        },
    ),
    SubmissionCase(
        (
            "-n2",
            "--gpus-per-task=1",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2,gres/gpu=2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerTask": "gres/gpu=1",
        },
    ),
    SubmissionCase(
        (
            "-n2",
            "--gpus-per-task=a100:1",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2,gres/gpu=2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerTask": "gres/gpu:a100=1",
        },
    ),
    SubmissionCase(
        ("--gpus-per-task=1",),
        code=1,
        output="",
        errors="sbatch: error: Failed to validate job spec. --gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks is not allowed.\nsbatch: error: Invalid generic resource (gres) specification\n",
    ),
    SubmissionCase(
        (
            "--gpus-per-task=1",
            "--gpus=4",
        ),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=4",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerJob": "gres/gpu:4",
            "TresPerTask": "gres/gpu=1",
        },
    ),
    SubmissionCase(
        (
            "--gpus=2",
            "--cpus-per-gpu=x",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "x" for --cpus-per-gpu.\n',
    ),
    SubmissionCase(
        (
            "--gpus=2",
            "--mem-per-gpu=x",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --mem-per-gpu specification\n",
    ),
    SubmissionCase(
        (
            "--gres=gpu:1",
            "--gpus-per-node=2",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: --gpus-per-node and --gres=gpu are mutually exclusive.\n",
    ),
    SubmissionCase(
        (
            "--gres=gpu:1",
            "--gpus=1",
        ),
        fields={
            "ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1",
            "TresPerJob": "gres/gpu:1",
            "TresPerNode": "gres/gpu:1",
        },
    ),
    SubmissionCase(
        (
            "-c2",
            "-n2",
            "--gpus-per-task=1",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "MinCPUsNode": "2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerTask": "cpu=2,gres/gpu=1",
        },
    ),
    SubmissionCase(
        (
            "-c2",
            "-n2",
            "--tres-per-task=gres/gpu:1",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "MinCPUsNode": "2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerTask": "cpu=2,gres/gpu:1",
        },
    ),
    SubmissionCase(
        (
            "-c2",
            "-n2",
            "--tres-per-task=cpu:3",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other\n",
    ),
    SubmissionCase(
        (
            "--tres-per-task=cpu=2,gres/gpu:1",
            "-n2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "MinCPUsNode": "2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerTask": "cpu=2,gres/gpu:1",
        },
    ),
    SubmissionCase(
        (
            "--tres-per-task=cpu:2",
            "-n2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "MinCPUsNode": "2",
            "TresPerTask": "cpu:2",
        },
    ),
    SubmissionCase(
        (
            "--gpus=4",
            "--ntasks-per-gpu=2",
        ),
        fields={
            "NumNodes": "1-8",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=1,billing=8,gres/gpu=4",
            "TresPerJob": "gres/gpu:4",
            "NtasksPerTRES": "2",
        },
    ),
    SubmissionCase(
        (
            "-N2",
            "--gpus-per-node=2",
            "--ntasks-per-gpu=1",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=2,billing=4,gres/gpu=4",
            "TresPerNode": "gres/gpu:2",
            "NtasksPerTRES": "1",
        },
    ),
    SubmissionCase(
        (
            "--mem-per-gpu=1G",
            "-n2",
        ),
        code=1,
        output="",
        errors="sbatch: error: Requested mem_per_tres=gres/gpu:1024 but did not request any GPU.\nsbatch: error: Invalid generic resource (gres) specification\n",
    ),
    SubmissionCase(
        (
            "--gpu-bind=closest",
            "--gpus=1",
        ),
        fields={
            "ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1",
            "TresBind": "gres/gpu:closest",
            "TresPerJob": "gres/gpu:1",
        },
    ),
    SubmissionCase(
        (
            "--gpu-freq=low",
            "--gpus=1",
        ),
        fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1", "TresFreq": "gpu:low", "TresPerJob": "gres/gpu:1"},
    ),
    SubmissionCase(("--gpu-freq=x",), code=255, output="", errors="sbatch: error: Invalid --gpu-freq argument: gpu:x\n"),
    SubmissionCase(("-n0",), code=1, output="", errors='sbatch: error: Invalid numeric value "0" for --ntasks.\n'),
    SubmissionCase(
        (
            "-n",
            "-1",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "-1" for --ntasks.\n',
    ),
    SubmissionCase(
        (
            "-n",
            "abc",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "abc" for --ntasks.\n',
    ),
    SubmissionCase(
        (
            "-n",
            "5x",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "5x" for --ntasks.\n',
    ),
    SubmissionCase(
        (
            "-n",
            "4294967295",
        ),
        code=1,
        output="",
        errors="sbatch: error: Numeric argument (4294967295) too large for --ntasks.\n",
    ),
    SubmissionCase(
        (
            "-n",
            "3",
        ),
        fields={"NumNodes": "1-3", "NumCPUs": "3", "NumTasks": "3", "ReqTRES": "cpu=3,mem=300M,node=1,billing=3"},
    ),
    SubmissionCase(
        (
            "-c",
            "0",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "0" for --cpus-per-task.\n',
    ),
    SubmissionCase(
        (
            "-c",
            "abc",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "abc" for --cpus-per-task.\n',
    ),
    SubmissionCase(
        (
            "-c",
            "2",
        ),
        fields={
            "NumNodes": "1",
            "NumCPUs": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "MinCPUsNode": "2",
            "TresPerTask": "cpu=2",
        },
    ),
    SubmissionCase(
        ("--ntasks-per-node=0",), code=1, output="", errors='sbatch: error: Invalid numeric value "0" for --ntasks-per-node.\n'
    ),
    SubmissionCase(
        ("--ntasks-per-node=3",),
        fields={
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "NtasksPerN:B:S:C": "3:0:*:*",
            "MinCPUsNode": "3",
        },
    ),
    SubmissionCase(("--mincpus=x",), code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --mincpus.\n'),
    SubmissionCase(("--mincpus=2",), fields={"MinCPUsNode": "2"}),
    SubmissionCase(("--nice",), fields={"Nice": "100"}),
    SubmissionCase(("--nice=x",)),
    SubmissionCase(("--nice=5",), fields={"Nice": "5"}),
    SubmissionCase(
        ("--nice=2147483646",),
        code=255,
        output="",
        errors="sbatch: error: Invalid --nice value, out of range (+/- 2147483645)\n",
    ),
    SubmissionCase(("--nice=-5",), fields={"Nice": "-5"}),
    SubmissionCase(("--priority=-1",), code=255, output="", errors="sbatch: error: Priority must be >= 0\n"),
    SubmissionCase(("--priority=x",)),
    SubmissionCase(("--priority=TOP",)),
    SubmissionCase(
        (
            "-B",
            "2:1:1",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqB:S:C:T": "0:0:1:1",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Socks/Node": "2",
        },
    ),
    SubmissionCase(
        (
            "-B",
            "2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Socks/Node": "2",
        },
    ),
    SubmissionCase(
        (
            "-B",
            "*:2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqB:S:C:T": "0:0:2:*",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
        },
    ),
    SubmissionCase(
        (
            "-B",
            "1-2:1",
        ),
        fields={"ReqB:S:C:T": "0:0:1:*", "Socks/Node": "1"},
    ),
    SubmissionCase(
        (
            "-B",
            "x",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "x" for first arg of -B.\n',
    ),
    SubmissionCase(
        ("--sockets-per-node=1-2",),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "1-2" for --sockets-per-node.\n',
    ),
    SubmissionCase(
        ("--cores-per-socket=x",),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "x" for --cores-per-socket.\n',
    ),
    SubmissionCase(("--threads-per-core=1",), fields={"ReqB:S:C:T": "0:0:*:1"}),
    SubmissionCase(
        ("--threads-per-core=0",),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "0" for --threads-per-core.\n',
    ),
    SubmissionCase(("--tmp=5G",), fields={"MinTmpDiskNode": "5G"}),
    SubmissionCase(("--tmp=x",), code=255, output="", errors="sbatch: error: Invalid --tmp specification\n"),
    SubmissionCase(("--switches=1",), fields={"Switches": "1@00:05:00"}),
    SubmissionCase(("--switches=1@5:00",), fields={"Switches": "1@00:05:00"}),
    SubmissionCase(("--switches=x",), code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --switches.\n'),
    SubmissionCase(("--switches=1@x",), fields={"Switches": "1@00:05:00"}),
    SubmissionCase(("--exclusive",), fields={"Exclusive": "NODE"}),
    SubmissionCase(("--exclusive=user",), fields={"Exclusive": "USER"}),
    SubmissionCase(("--exclusive=mcs",), fields={"Exclusive": "MCS"}),
    SubmissionCase(("--exclusive=topo",), fields={"Exclusive": "TOPO"}),
    SubmissionCase(("--exclusive=x",), code=255, output="", errors="sbatch: error: Invalid --exclusive specification\n"),
    SubmissionCase(("--oversubscribe",), fields={"OverSubscribe": "YES"}),
    SubmissionCase(("-s",), fields={"OverSubscribe": "YES"}),
    SubmissionCase(
        (
            "--exclusive",
            "-s",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: --exclusive and --oversubscribe options are mutually exclusive\n",
    ),
    SubmissionCase(("-O",)),
    SubmissionCase(
        (
            "-O",
            "-n4",
        ),
        fields={"NumNodes": "1-4", "NumTasks": "4"},
    ),
    SubmissionCase(
        (
            "-m",
            "block",
        )
    ),
    SubmissionCase(
        (
            "-m",
            "cyclic",
        )
    ),
    SubmissionCase(
        (
            "-m",
            "plane",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid plane size or size not specified\nsbatch: error: Invalid --distribution specification\n",
    ),
    SubmissionCase(
        (
            "-m",
            "plane=x",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid plane size or size not specified\nsbatch: error: Invalid --distribution specification\n",
    ),
    SubmissionCase(
        (
            "-m",
            "x",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --distribution specification\n",
    ),
    SubmissionCase(
        (
            "-m",
            "block:x",
        ),
        code=255,
        output="",
        errors="sbatch: error: Invalid --distribution specification\n",
    ),
    SubmissionCase(
        (
            "-m",
            "arbitrary",
        ),
        code=1,
        output="",
        errors="sbatch: error: With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option\n",
    ),
    SubmissionCase(
        (
            "-m",
            "block:cyclic",
        )
    ),
    SubmissionCase(("--hint=compute_bound",), fields={"ReqB:S:C:T": "0:0:*:1"}),
    SubmissionCase(("--hint=nomultithread",), fields={"ReqB:S:C:T": "0:0:*:1"}),
    SubmissionCase(("--hint=memory_bound",), fields={"ReqB:S:C:T": "0:0:1:1"}),
    SubmissionCase(
        ("--hint=x",), code=1, output="", errors='sbatch: error: unrecognized --hint argument "x", see --hint=help\n'
    ),
    SubmissionCase(("--open-mode=x",), code=255, output="", errors="sbatch: error: Invalid --open-mode specification\n"),
    SubmissionCase(("--open-mode=append",)),
    SubmissionCase(("--time-min=x",), code=255, output="", errors="sbatch: error: Invalid --time-min specification\n"),
    SubmissionCase(("--time-min=5",), fields={"TimeMin": "00:05:00"}),
    SubmissionCase(
        ("--deadline=x",),
        code=255,
        output="",
        errors="Invalid time specification (pos=0): x\nsbatch: error: Invalid --deadline specification\n",
    ),
    SubmissionCase(("--delay-boot=5",), fields={"DelayBoot": "00:05:00"}),
    SubmissionCase(("--delay-boot=x",), code=255, output="", errors="sbatch: error: Invalid --delay-boot specification\n"),
    SubmissionCase(
        ("--cpu-freq=x",),
        code=255,
        output="",
        errors='sbatch: error: unrecognized --cpu-freq argument "x"\nsbatch: error: Invalid --cpu-freq argument\n',
    ),
    SubmissionCase(("--gres-flags=x",), code=255, output="", errors="sbatch: error: Invalid --gres-flags specification: x\n"),
    SubmissionCase(("--acctg-freq=x",), code=255, output="", errors="sbatch: error: Invalid --acctg-freq specification: x\n"),
    SubmissionCase(("--profile=x",), code=255, output="", errors="sbatch: error: invalid --profile=x option\n"),
    SubmissionCase(("--profile=all",)),
    SubmissionCase(("--kill-on-invalid-dep=yes",), fields={"KillOnInvalidDependent": "Yes"}),
    SubmissionCase(
        ("--kill-on-invalid-dep=x",), code=255, output="", errors="sbatch: error: Invalid --kill-on-invalid-dep specification\n"
    ),
    SubmissionCase(
        ("--wait-all-nodes=x",), code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --wait-all-nodes.\n'
    ),
    SubmissionCase(
        ("--wait-all-nodes=2",), code=255, output="", errors="sbatch: error: Invalid --wait-all-nodes specification\n"
    ),
    SubmissionCase(("--mem-bind=x",), code=255, output="", errors='sbatch: error: unrecognized --mem-bind argument "x"\n'),
    SubmissionCase(("--network=x",), fields={"Network": "x"}),
    SubmissionCase(("--no-kill=x",), code=255, output="", errors="sbatch: error: Invalid --no-kill specification\n"),
    SubmissionCase(("--no-kill",)),
    SubmissionCase(
        ("--propagate=x",),
        code=1,
        output="",
        errors="sbatch: error: Bad rlimit name: x\nsbatch: error: --propagate=x is not valid.\n",
    ),
    SubmissionCase(("--propagate",)),
    SubmissionCase(("--requeue",)),
    SubmissionCase(("--no-requeue",), fields={"Requeue": "0"}),
    SubmissionCase(("--requeue=x",), code=255, output="", errors="sbatch: error: Invalid --requeue specification\n"),
    SubmissionCase(("--spread-job",), fields={"SpreadJob": "Yes"}),
    SubmissionCase(("--use-min-nodes",)),
    SubmissionCase(("--contiguous",), fields={"Contiguous": "1"}),
    SubmissionCase(("--uid=nope",), code=255, output="", errors="sbatch: error: Invalid --uid specification\n"),
    SubmissionCase(("--gid=nope",), code=255, output="", errors="sbatch: error: Invalid --gid specification\n"),
    SubmissionCase(("--comment=hi there",), fields={"Comment": "hi there"}),
    SubmissionCase(("--extra=x",), fields={"Extra": "x"}),
    SubmissionCase(
        ("--core-spec=1",),
        errors="sbatch: error: Ignoring -S since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n",
    ),
    SubmissionCase(
        ("--thread-spec=1",),
        errors="sbatch: error: Ignoring --thread-spec since it's not allowed by configuration (AllowSpecResourcesUsage = No)\n",
    ),
    SubmissionCase(
        (
            "-S",
            "x",
        ),
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "x" for --core-spec.\n',
    ),
    SubmissionCase(("--segment=x",), code=255, output="", errors="sbatch: error: Invalid --segment specification\n"),
    SubmissionCase(("--oom-kill-step",), fields={"OOMKillStep": "1"}),
    SubmissionCase(
        ("--oom-kill-step=x",), code=255, output="", errors="sbatch: error: Invalid --oom-kill-step specification\n"
    ),
    SubmissionCase(
        ("--mem-update=1",), code=255, output="", errors="sbatch: error: --mem-update requires MARGIN@DELAY format\n"
    ),
    SubmissionCase(("--licenses=matlab:1",), fields={"Licenses": "matlab:1"}),
    SubmissionCase(
        (
            "-L",
            "x",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid license specification\n",
    ),
    SubmissionCase(
        (
            "-L",
            "matlab:1,foo",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid license specification\n",
    ),
    SubmissionCase(
        ("--nodefile=/nope",),
        code=255,
        output="",
        errors="sbatch: error: slurm_allocate_resources error opening file /nope, No such file or directory\nsbatch: error: Invalid --nodefile node file\n",
    ),
    SubmissionCase(("--ntasks-per-core=2",), fields={"NumNodes": "1", "NtasksPerN:B:S:C": "0:0:*:2"}),
    SubmissionCase(
        ("--ntasks-per-core=x",), code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --ntasks-per-core.\n'
    ),
    SubmissionCase(("--ntasks-per-socket=2",), fields={"NtasksPerN:B:S:C": "0:0:2:*"}),
    SubmissionCase(
        ("--export-file=/nope",), code=1, output="", errors="sbatch: error: Could not open user environment file /nope\n"
    ),
    SubmissionCase(
        ("--power=x",),
        code=255,
        output="",
        errors="sbatch: unrecognized option '--power=x'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        (
            "-w",
            "n[1-2]",
        ),
        fields={
            "ReqNodeList": "n[1-2]",
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
        },
    ),
    SubmissionCase(
        (
            "-w",
            "n[1-2",
        ),
        code=1,
        output="",
        errors="sbatch: fatal: Invalid node list specified\n",
    ),
    SubmissionCase(
        (
            "-w",
            "n2,n1,n[3-4]",
        ),
        fields={
            "ReqNodeList": "n[1-4]",
            "NumNodes": "4-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=4,billing=4",
        },
    ),
    SubmissionCase(
        (
            "-w",
            "n1",
            "-x",
            "n1",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid node name specified\n",
    ),
    SubmissionCase(
        (
            "-w",
            "n99",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid node name specified\n",
    ),
    SubmissionCase(
        (
            "-x",
            "n2,n1",
        ),
        fields={"ExcNodeList": "n[1-2]"},
    ),
    SubmissionCase(
        (
            "-x",
            "n1",
        ),
        fields={"ExcNodeList": "n1"},
    ),
    SubmissionCase(
        (
            "-w",
            "/tmp/nofile",
        ),
        code=1,
        output="",
        errors="sbatch: error: slurm_allocate_resources error opening file /tmp/nofile, No such file or directory\n",
    ),
    SubmissionCase(
        (
            "-D",
            "/nope",
        ),
        fields={"WorkDir": "/nope", "StdOut": "/nope/slurm-{0}.out"},
    ),
    SubmissionCase(
        (
            "-D",
            "rel",
        ),
        fields={"WorkDir": "{work}/rel", "StdOut": "{work}/rel/slurm-{0}.out"},
    ),
    SubmissionCase(
        (
            "-D",
            "..",
        ),
        fields={"WorkDir": "{work}/..", "StdOut": "{work}/../slurm-{0}.out"},
    ),
    SubmissionCase(
        (
            "-J",
            "",
        ),
        fields={"JobName": ""},
    ),
    SubmissionCase(
        (
            "-J",
            "a b",
        ),
        fields={"JobName": "a b"},
    ),
    SubmissionCase(
        (
            "-J",
            "x/y",
        ),
        fields={"JobName": "x/y"},
    ),
    SubmissionCase(
        (
            "-A",
            "",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    ),
    SubmissionCase(
        (
            "-A",
            "nope",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    ),
    SubmissionCase(
        (
            "-A",
            "chem",
        ),
        fields={"Account": "chem"},
    ),
    SubmissionCase(
        (
            "-q",
            "nope",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid qos specification\n",
    ),
    SubmissionCase(
        (
            "-q",
            "normal",
        )
    ),
    SubmissionCase(
        (
            "-p",
            "nope",
        ),
        code=1,
        output="",
        errors="sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
    ),
    SubmissionCase(
        (
            "-p",
            "gpu",
        ),
        fields={"TimeLimit": "2-00:00:00", "Partition": "gpu"},
    ),
    SubmissionCase(
        (
            "-p",
            "debug,gpu",
        ),
        fields={"Partition": "debug,gpu"},
    ),
    SubmissionCase(
        (
            "-o",
            "none",
            "-e",
            "none",
            "-i",
            "none",
        ),
        fields={"StdErr": "/dev/null", "StdOut": "/dev/null"},
    ),
    SubmissionCase(
        (
            "-o",
            "sub/x.out",
            "-e",
            "/abs/y",
            "-i",
            "in",
        ),
        fields={"StdErr": "/abs/y", "StdIn": "{work}/in", "StdOut": "{work}/sub/x.out"},
    ),
    SubmissionCase(
        ("--nope",),
        code=255,
        output="",
        errors="sbatch: unrecognized option '--nope'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        ("--no",),
        code=255,
        output="",
        errors="sbatch: option '--no' is ambiguous; possibilities: '--no-kill' '--no-requeue' '--nodefile' '--nodelist' '--nodes'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        ("--n",),
        code=255,
        output="",
        errors="sbatch: option '--n' is ambiguous; possibilities: '--network' '--nice' '--no-kill' '--no-requeue' '--nodefile' '--nodelist' '--nodes' '--ntasks' '--ntasks-per-core' '--ntasks-per-gpu' '--ntasks-per-node' '--ntasks-per-socket' '--ntasks-per-tres'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        ("-y",), code=255, output="", errors="sbatch: invalid option -- 'y'\nTry \"sbatch --help\" for more information\n"
    ),
    SubmissionCase(
        ("--hold=5",),
        code=255,
        output="",
        errors="sbatch: option '--hold' doesn't allow an argument\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(("--exclusiv",), fields={"Exclusive": "NODE"}),
    SubmissionCase(
        ("--ntasks-per",),
        code=255,
        output="",
        errors="sbatch: option '--ntasks-per' is ambiguous; possibilities: '--ntasks-per-core' '--ntasks-per-gpu' '--ntasks-per-node' '--ntasks-per-socket' '--ntasks-per-tres'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        (
            "-M",
            "x",
        ),
        code=1,
        output="",
        errors="sbatch: error: No cluster 'x' known by database.\nsbatch: error: 'x' can't be reached now, or it is an invalid entry for --cluster.  Use 'sacctmgr list clusters' to see available clusters.\n",
    ),
    SubmissionCase(("--signal=USR1",)),
    SubmissionCase(("--signal=B:10@60",)),
    SubmissionCase(("--signal=abc",), code=255, output="", errors="sbatch: error: Invalid --signal specification\n"),
    SubmissionCase(("--signal=USR1@99999",), code=255, output="", errors="sbatch: error: Invalid --signal specification\n"),
    SubmissionCase(("--signal=0",), code=255, output="", errors="sbatch: error: Invalid --signal specification\n"),
    SubmissionCase(("--mail-type=BEGIN",), fields={"MailUser": "root", "MailType": "BEGIN"}),
    SubmissionCase(
        (
            "--mail-type=END,FAIL",
            "--mail-user=bob",
        ),
        fields={"MailUser": "bob", "MailType": "END,FAIL"},
    ),
    SubmissionCase(
        ("--mail-type=ALL",), fields={"MailUser": "root", "MailType": "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"}
    ),
    SubmissionCase(("--mail-type=abc",), code=255, output="", errors="sbatch: error: Invalid --mail-type specification\n"),
    SubmissionCase(
        ("--mail-type=TIME_LIMIT_90,TIME_LIMIT_50",), fields={"MailUser": "root", "MailType": "TIME_LIMIT_50,TIME_LIMIT_90"}
    ),
    SubmissionCase(("--mail-type=NONE",)),
    SubmissionCase(
        ("--begin=abc",),
        code=255,
        output="",
        errors="Invalid time specification (pos=0): abc\nsbatch: error: Invalid --begin specification\n",
    ),
    SubmissionCase(
        ("--begin=16",),
        code=255,
        output="",
        errors="Invalid time specification (pos=0): 16\nsbatch: error: Invalid --begin specification\n",
    ),
    SubmissionCase(
        ("--begin=now+5min",),
        code=255,
        output="",
        errors="Invalid time specification (pos=4): now+5min\nsbatch: error: Invalid --begin specification\n",
    ),
    SubmissionCase(
        ("--begin=4pm",),
        code=255,
        output="",
        errors="Invalid time specification (pos=1): 4pm\nsbatch: error: Invalid --begin specification\n",
    ),
    SubmissionCase(
        ("--begin=2027-13-01",),
        code=255,
        output="",
        errors="Invalid time specification (pos=5): 2027-13-01\nsbatch: error: Invalid --begin specification\n",
    ),
    SubmissionCase(("--begin=",), code=255, output="", errors="sbatch: error: Invalid --begin specification\n"),
    SubmissionCase(("--begin=2037-01-01",)),
    SubmissionCase(("--begin=010237-10:00",)),
    SubmissionCase(
        (
            "-t",
            "5",
            "--time-min=10",
        ),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid time-min specification (exceeds job's time or other limits)\n",
    ),
    SubmissionCase(("--wckey=k",)),
    SubmissionCase(("--bb=x",), fields={"BurstBuffer": "x"}),
    SubmissionCase(("--bbf=/nope",), code=1, output="", errors="sbatch: error: Invalid --bbf specification\n"),
    SubmissionCase(("--cluster-constraint=x",), fields={"ClusterFeatures": "x"}),
    SubmissionCase(("--container=x",), fields={"ContainerType": "(null)", "Container": "x", "ContainerID": "(null)"}),
    SubmissionCase(("--reboot",), fields={"Reboot": "1", "Exclusive": "NODE"}),
    SubmissionCase(("--mcs-label=x",), fields={"GroupId": "root(0) MCS_label=x"}),
    SubmissionCase(("--prefer=a100",), fields={"Prefer": "a100"}),
    SubmissionCase(
        ("--prefer=x",),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid preferred feature specification\n",
    ),
    SubmissionCase(
        ("--batch=a100",),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Job --batch option is invalid or not a subset of --constraint\n",
    ),
    SubmissionCase(
        ("--tres-bind=x",),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Invalid Trackable RESource (TRES) specification\n",
    ),
    SubmissionCase(
        ("--resv-ports",),
        code=1,
        output="",
        errors="sbatch: error: Slurmstepd step management must be enabled to use --resv-ports for job allocations\n",
    ),
    SubmissionCase(
        ("--resv-ports=x",), code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --resv-port.\n'
    ),
    SubmissionCase(
        ("--external",), code=1, output="", errors="sbatch: error: --wrap option not permitted with --external option\n"
    ),
    SubmissionCase(("--time",), code=255, output="", errors="sbatch: error: Invalid --time specification\n"),
    SubmissionCase(("-Q",), output=""),
    SubmissionCase(
        ("--reservation=x",),
        code=1,
        output="",
        errors="sbatch: error: Batch job submission failed: Requested reservation is invalid\n",
    ),
    SubmissionCase(("--reservation=",)),
    SubmissionCase(
        (
            "-n2",
            "-N4",
        ),
        errors="sbatch: warning: can't run 2 processes on 4 nodes, setting nnodes to 2\n",
        fields={"NumNodes": "2-2", "NumCPUs": "2", "NumTasks": "2", "ReqTRES": "cpu=2,mem=200M,node=2,billing=2"},
    ),
    SubmissionCase(
        (
            "-N4",
            "-n2",
            "--ntasks-per-node=2",
        ),
        errors="sbatch: warning: can't run 2 processes on 4 nodes, setting nnodes to 2\n",
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        (
            "-N2",
            "-w",
            "n1,n2,n3",
        ),
        fields={
            "ReqNodeList": "n[1-3]",
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
        },
    ),
    SubmissionCase(
        (
            "-N1",
            "-w",
            "n1,n2",
        ),
        fields={"ReqNodeList": "n[1-2]"},
    ),
    SubmissionCase(
        (
            "-w",
            "n1,n2",
            "-n1",
        ),
        errors="sbatch: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n",
        fields={"ReqNodeList": "n[1-2]"},
    ),
    SubmissionCase(
        (
            "-w",
            "n1",
            "-N3",
        ),
        fields={
            "ReqNodeList": "n1",
            "NumNodes": "3-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=3,billing=3",
        },
    ),
    SubmissionCase(
        (
            "-w",
            "n1",
            "-n4",
        ),
        fields={
            "ReqNodeList": "n1",
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
        },
    ),
    SubmissionCase(
        (
            "-w",
            "n[1-3]",
            "-n6",
        ),
        fields={
            "ReqNodeList": "n[1-3]",
            "NumNodes": "3-6",
            "NumCPUs": "6",
            "NumTasks": "6",
            "ReqTRES": "cpu=6,mem=600M,node=3,billing=6",
        },
    ),
    SubmissionCase(
        (
            "-N2-4",
            "-n8",
            "--ntasks-per-node=2",
        ),
        fields={
            "NumNodes": "4-4",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        (
            "-N2-6",
            "-n8",
            "--ntasks-per-node=2",
        ),
        fields={
            "NumNodes": "4-6",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        (
            "-n8",
            "--ntasks-per-node=4",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "4",
        },
    ),
    SubmissionCase(
        (
            "-n9",
            "--ntasks-per-node=4",
        ),
        fields={
            "NumNodes": "3-3",
            "NumCPUs": "9",
            "NumTasks": "9",
            "ReqTRES": "cpu=9,mem=900M,node=3,billing=9",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "4",
        },
    ),
    SubmissionCase(
        (
            "-N1",
            "-n8",
            "--ntasks-per-node=4",
        ),
        fields={
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=1,billing=8",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "4",
        },
    ),
    SubmissionCase(
        (
            "-N2",
            "--ntasks-per-node=3",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "6",
            "NumTasks": "6",
            "ReqTRES": "cpu=6,mem=600M,node=2,billing=6",
            "NtasksPerN:B:S:C": "3:0:*:*",
            "MinCPUsNode": "3",
        },
    ),
    SubmissionCase(("-N2-4",), fields={"NumNodes": "2-4", "NumTasks": "2", "ReqTRES": "cpu=1,mem=100M,node=2,billing=1"}),
    SubmissionCase(
        (
            "-N2-4",
            "-n3",
        ),
        fields={"NumNodes": "2-3", "NumCPUs": "3", "NumTasks": "3", "ReqTRES": "cpu=3,mem=300M,node=2,billing=3"},
    ),
    SubmissionCase(
        (
            "-N2-4",
            "-n1",
        ),
        errors="sbatch: warning: can't run 1 processes on 2 nodes, setting nnodes to 1\n",
    ),
    SubmissionCase(
        (
            "-c3",
            "-n2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "6",
            "NumTasks": "2",
            "CPUs/Task": "3",
            "ReqTRES": "cpu=6,mem=600M,node=1,billing=6",
            "MinCPUsNode": "3",
            "TresPerTask": "cpu=3",
        },
    ),
    SubmissionCase(
        (
            "-n4",
            "-N2",
            "-c2",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "8",
            "NumTasks": "4",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "MinCPUsNode": "2",
            "TresPerTask": "cpu=2",
        },
    ),
    SubmissionCase(
        (
            "-n4",
            "--mincpus=2",
        ),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        (
            "-c4",
            "--mincpus=2",
        ),
        fields={
            "NumNodes": "1",
            "NumCPUs": "4",
            "CPUs/Task": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "MinCPUsNode": "4",
            "TresPerTask": "cpu=4",
        },
    ),
    SubmissionCase(
        (
            "-N2",
            "-n5",
        ),
        fields={"NumNodes": "2-2", "NumCPUs": "5", "NumTasks": "5", "ReqTRES": "cpu=5,mem=500M,node=2,billing=5"},
    ),
    SubmissionCase(
        (
            "-N2",
            "-c4",
            "--exclusive",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "8",
            "NumTasks": "2",
            "CPUs/Task": "4",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "MinCPUsNode": "4",
            "Exclusive": "NODE",
            "TresPerTask": "cpu=4",
        },
    ),
    SubmissionCase(
        (
            "-n4",
            "--ntasks-per-socket=2",
        ),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "NtasksPerN:B:S:C": "0:0:2:*",
        },
    ),
    SubmissionCase(
        (
            "-n4",
            "--ntasks-per-core=1",
        ),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "NtasksPerN:B:S:C": "0:0:*:1",
        },
    ),
    SubmissionCase(
        (
            "-s",
            "-n2",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "OverSubscribe": "YES",
        },
    ),
    SubmissionCase(
        (
            "-n1",
            "-N1",
            "--ntasks-per-node=4",
        ),
        fields={"NtasksPerN:B:S:C": "4:0:*:*"},
    ),
    SubmissionCase(
        (
            "-n3",
            "--ntasks-per-node=2",
        ),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=2,billing=3",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        (
            "-c3",
            "--ntasks-per-node=2",
        ),
        fields={
            "NumCPUs": "6",
            "NumTasks": "2",
            "CPUs/Task": "3",
            "ReqTRES": "cpu=6,mem=600M,node=1,billing=6",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "6",
            "TresPerTask": "cpu=3",
        },
    ),
    SubmissionCase(
        (
            "--mem=0",
            "--exclusive",
        ),
        fields={
            "ReqTRES": "cpu=1,mem=16000M,node=1,billing=1",
            "MinMemoryNode": "0",
            "Exclusive": "NODE",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("-N2",), fields={"NumNodes": "2-2", "NumCPUs": "2", "NumTasks": "2", "ReqTRES": "cpu=2,mem=200M,node=2,billing=2"}
    ),
    SubmissionCase(
        (
            "-n",
            "12",
            "-C",
            "cpu",
        ),
        fields={
            "NumNodes": "1-12",
            "NumCPUs": "12",
            "NumTasks": "12",
            "ReqTRES": "cpu=12,mem=1200M,node=1,billing=12",
            "Features": "cpu",
        },
    ),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J a\necho\n#SBATCH -n 3\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n\n\n#SBATCH -J a\n# c\n#SBATCH -n 3\necho\n",
        fields={
            "JobName": "a",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(script="#!/bin/sh\n  #SBATCH -J a\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J a\n  \n\t\n#SBATCH -n 3\n:\n",
        fields={
            "JobName": "a",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(script="#!/bin/sh\n  # c\n#SBATCH -J got\n", fields={"JobName": "got", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J a # comment -n 3\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J a#b\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH -J "a b" -n 3\n',
        fields={
            "JobName": "a b",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J 'a b' -n 3\n",
        fields={
            "JobName": "a b",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J a\\ b -n 3\n",
        fields={
            "JobName": "a b",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH -J "a\\"b" -n 3\n',
        fields={
            "JobName": 'a"b',
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J 'a\\'b' -n 3\n",
        fields={
            "JobName": "a'b",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --comment='a # b' -n 3\n",
        fields={
            "JobName": "s.sh",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
            "Comment": "a # b",
        },
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH --comment="a\n',
        code=1,
        output="",
        errors='sbatch: fatal: s.sh: line 2: Unmatched `"` in [--comment="a]\n',
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH -J a --comment="x\n',
        code=1,
        output="",
        errors='sbatch: fatal: s.sh: line 2: Unmatched `"` in [ --comment="x]\n',
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH --comment=a"b c"d -n 3\n',
        fields={
            "JobName": "s.sh",
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "Command": "{work}/s.sh",
            "Comment": "ab cd",
        },
    ),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J a\\\n -n 3\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH-J a\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH\t-J\ta\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n##SBATCH -J a\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n# SBATCH -J a\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#sbatch -J a\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH foo\n",
        code=255,
        output="",
        errors="sbatch: error: Invalid directive found in batch script: foo\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J a foo -n 3\n",
        code=255,
        output="",
        errors="sbatch: error: Invalid directive found in batch script: foo\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --nope\n",
        code=255,
        output="",
        errors="sbatch: unrecognized option '--nope'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -n x\n", code=1, output="", errors='sbatch: error: Invalid numeric value "x" for --ntasks.\n'
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -t x\n", code=255, output="", errors="sbatch: error: Invalid --time specification\n"
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -n\n",
        code=255,
        output="",
        errors="sbatch: option requires an argument -- 'n'\nTry \"sbatch --help\" for more information\n",
    ),
    SubmissionCase(script="#!/bin/sh\n#SBATCH --help\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH --wrap=foo\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -- -J a\n",
        code=255,
        output="",
        errors="sbatch: error: Invalid directive found in batch script: -J\n",
    ),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J a\n#SBATCH -J b\n", fields={"JobName": "b", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#SBATCH -J x:\n", fields={"JobName": "x:", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -n 1 : -n 2\n",
        code=1,
        output="",
        errors="sbatch: fatal: s.sh: line 2: Unexpected `:` in [ : -n 2]\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J :\n", code=1, output="", errors="sbatch: fatal: s.sh: line 2: Unexpected `:` in [ :]\n"
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH   -J   a   -n   2  \n",
        fields={
            "JobName": "a",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH --job-name="" -n 2\n',
        fields={
            "JobName": "",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -Ja -n2\n",
        fields={
            "JobName": "a",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --comment=$HOME -n 2\n",
        fields={
            "JobName": "s.sh",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
            "Comment": "$HOME",
        },
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH --comm"ent=a b"\n', fields={"JobName": "s.sh", "Command": "{work}/s.sh", "Comment": "a b"}
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --comment=\\# -n 2\n",
        fields={
            "JobName": "s.sh",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
            "Comment": "#",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --comment=# -n 2\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh", "Comment": ""}
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --comment=a\\\\b\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh", "Comment": "a\\b"}
    ),
    SubmissionCase(
        script='#!/bin/sh\n#SBATCH --comment="a\\nb"\n', fields={"JobName": "s.sh", "Command": "{work}/s.sh", "Comment": "anb"}
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCHX -n 2\n",
        code=255,
        output="",
        errors="sbatch: error: Invalid directive found in batch script: X\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#PBS -N pbs\n#PBS -l nodes=2\n",
        fields={
            "JobName": "pbs",
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(script="#!/bin/sh\n#PBS -N pbs\n#SBATCH -J a\n", fields={"JobName": "pbs", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!/bin/sh\n#BSUB -J lsf\n", fields={"JobName": "lsf", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J a\u000b -n 2\n",
        fields={
            "JobName": "a",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --exclusive\n#SBATCH --mem-per-cpu=1G\n",
        fields={
            "JobName": "s.sh",
            "ReqTRES": "cpu=1,mem=1G,node=1,billing=1",
            "MinMemoryCPU": "1G",
            "Exclusive": "NODE",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#PBS -l walltime=1:00:00,mem=2gb\n",
        fields={
            "JobName": "s.sh",
            "TimeLimit": "01:00:00",
            "ReqTRES": "cpu=1,mem=2G,node=1,billing=1",
            "MinMemoryNode": "2G",
            "Command": "{work}/s.sh",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#PBS -l nodes=2:ppn=3\n",
        fields={
            "JobName": "s.sh",
            "NumNodes": "2-2",
            "NumCPUs": "6",
            "NumTasks": "6",
            "ReqTRES": "cpu=6,mem=600M,node=2,billing=6",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n#PBS -q gpu -A chem\n",
        fields={"JobName": "s.sh", "Account": "chem", "TimeLimit": "2-00:00:00", "Partition": "gpu", "Command": "{work}/s.sh"},
    ),
    SubmissionCase(
        script="#!/bin/sh\n#BSUB -n 4 -W 1:30 -q gpu\n",
        fields={
            "JobName": "s.sh",
            "TimeLimit": "00:02:00",
            "Partition": "gpu",
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        (
            "-J",
            "c",
        ),
        script="#!/bin/sh\n#SBATCH -J a\n",
        fields={"JobName": "c", "Command": "{work}/s.sh"},
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH -J a -n 2\n",
        environment={"SBATCH_JOB_NAME": "envj"},
        fields={
            "JobName": "envj",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "Command": "{work}/s.sh",
        },
    ),
    SubmissionCase(
        script="#!/bin/sh\n", environment={"SBATCH_JOB_NAME": "envj"}, fields={"JobName": "envj", "Command": "{work}/s.sh"}
    ),
    SubmissionCase(
        (
            "-J",
            "c",
        ),
        script="#!/bin/sh\n",
        environment={"SBATCH_JOB_NAME": "envj"},
        fields={"JobName": "c", "Command": "{work}/s.sh"},
    ),
    SubmissionCase(("--ignore-pbs",), script="#!/bin/sh\n#PBS -N pbs\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(
        ("--mem=2G",),
        script="#!/bin/sh\n#SBATCH --mem-per-cpu=1G\n",
        code=1,
        output="",
        errors="sbatch: fatal: --mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\n#SBATCH --mem-per-cpu=1G\n",
        environment={"SBATCH_MEM_PER_NODE": "2G"},
        fields={"JobName": "s.sh", "ReqTRES": "cpu=1,mem=1G,node=1,billing=1", "MinMemoryCPU": "1G", "Command": "{work}/s.sh"},
    ),
    SubmissionCase(
        script="#!/bin/sh\r\n#SBATCH -J a\r\n",
        code=1,
        output="",
        errors="sbatch: error: Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).\n",
    ),
    SubmissionCase(
        script="#!/bin/sh\necho\r\n",
        code=1,
        output="",
        errors="sbatch: error: Batch script contains DOS line breaks (\\r\\n)\nsbatch: error: instead of expected UNIX line breaks (\\n).\n",
    ),
    SubmissionCase(
        script="\ufeff#!/bin/sh\n",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(
        script="#SBATCH -J a\n",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(
        script="echo hi\n",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(script="", code=1, output="", errors="sbatch: error: Batch script is empty!\n"),
    SubmissionCase(script="\n \t\n", code=1, output="", errors="sbatch: error: Batch script contains only whitespace!\n"),
    SubmissionCase(
        script="\n#!/bin/sh\n",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(
        script=" #!/bin/sh\n",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(script="#!\n#SBATCH -J a\n", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#! /bin/sh\n#SBATCH -J a", fields={"JobName": "a", "Command": "{work}/s.sh"}),
    SubmissionCase(script="#!bin/sh\n", fields={"JobName": "s.sh", "Command": "{work}/s.sh"}),
    SubmissionCase(
        script="#!/bin/sh\n\u0000\n",
        code=1,
        output="",
        errors="sbatch: error: The Slurm controller does not allow scripts that\nsbatch: error: contain a NULL character '\\0'.\n",
    ),
    SubmissionCase(
        script="\u007fELF\u0000\u0000",
        code=1,
        output="",
        errors="sbatch: error: This does not look like a batch script.  The first\nsbatch: error: line must start with #! followed by the path to an interpreter.\nsbatch: error: For instance: #!/bin/sh\n",
    ),
    SubmissionCase(environment={"SBATCH_PARTITION": "gpu"}, fields={"TimeLimit": "2-00:00:00", "Partition": "gpu"}),
    SubmissionCase(
        environment={"SBATCH_TIMELIMIT": "x"}, code=255, output="", errors="sbatch: error: Invalid --time specification\n"
    ),
    SubmissionCase(environment={"SBATCH_TIMELIMIT": "7"}, fields={"TimeLimit": "00:07:00"}),
    SubmissionCase(environment={"SBATCH_OVERCOMMIT": "0"}),
    SubmissionCase(environment={"SBATCH_EXCLUSIVE": ""}, fields={"Exclusive": "NODE"}),
    SubmissionCase(environment={"SBATCH_EXCLUSIVE": "user"}, fields={"Exclusive": "USER"}),
    SubmissionCase(
        environment={"SBATCH_REQUEUE": "0"}, code=255, output="", errors="sbatch: error: Invalid --requeue specification\n"
    ),
    SubmissionCase(environment={"SBATCH_NO_REQUEUE": "yes"}, fields={"Requeue": "0"}),
    SubmissionCase(environment={"SBATCH_NO_REQUEUE": "no"}),
    SubmissionCase(
        environment={"SBATCH_DEBUG": "1"},
        errors="sbatch: defined options\nsbatch: -------------------- --------------------\nsbatch: hold                : set\nsbatch: parsable            : set\nsbatch: verbose             : 1\nsbatch: wrap                : true\nsbatch: -------------------- --------------------\nsbatch: end of defined options\n",
    ),
    SubmissionCase(
        environment={"SBATCH_PARTITION": "nope", "SLURM_EXIT_ERROR": "42"},
        code=42,
        output="",
        errors="sbatch: error: invalid partition specified: nope\nsbatch: error: Batch job submission failed: Invalid partition name specified\n",
    ),
    SubmissionCase(
        environment={"SBATCH_NO_KILL": "x"}, code=255, output="", errors="sbatch: error: Invalid --no-kill specification\n"
    ),
    SubmissionCase(
        environment={"SBATCH_WAIT_ALL_NODES": "7"},
        code=255,
        output="",
        errors="sbatch: error: Invalid --wait-all-nodes specification\n",
    ),
    SubmissionCase(
        environment={"SBATCH_GPUS": "1"},
        fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=1", "TresPerJob": "gres/gpu:1"},
    ),
    SubmissionCase(
        environment={"SBATCH_MEM_PER_CPU": "1G", "SBATCH_MEM_PER_NODE": "2G"},
        code=1,
        output="",
        errors="sbatch: fatal: SLURM_MEM_PER_CPU, SLURM_MEM_PER_GPU, and SLURM_MEM_PER_NODE are mutually exclusive.\n",
    ),
    SubmissionCase(environment={"SBATCH_ACCOUNT": "chem"}, fields={"Account": "chem"}),
    SubmissionCase(
        environment={"SBATCH_ARRAY_INX": "1-3"},
        fields={"ArrayJobId": "{0}", "ArrayTaskId": "1-3", "StdOut": "{work}/slurm-{0}_4294967294.out"},
    ),
    SubmissionCase(environment={"SBATCH_CONSTRAINT": "cpu"}, fields={"Features": "cpu"}),
    SubmissionCase(environment={"SBATCH_REQ_SWITCH": "1", "SBATCH_WAIT4SWITCH": "5:00"}, fields={"Switches": "1@00:05:00"}),
    SubmissionCase(
        ("--mem=2G",),
        environment={"SBATCH_MEM_PER_CPU": "1G"},
        fields={"ReqTRES": "cpu=1,mem=2G,node=1,billing=1", "MinMemoryNode": "2G", "MinMemoryCPU": None},
    ),
    SubmissionCase(
        (
            "-n",
            "x",
        ),
        environment={"SLURM_EXIT_ERROR": "42"},
        code=1,
        output="",
        errors='sbatch: error: Invalid numeric value "x" for --ntasks.\n',
    ),
    SubmissionCase(
        (
            "-v",
            "-n2",
            "-J",
            "x",
        ),
        errors="sbatch: defined options\nsbatch: -------------------- --------------------\nsbatch: hold                : set\nsbatch: job-name            : x\nsbatch: ntasks              : 2\nsbatch: parsable            : set\nsbatch: verbose             : 1\nsbatch: wrap                : true\nsbatch: -------------------- --------------------\nsbatch: end of defined options\n",
        fields={
            "JobName": "x",
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
        },
    ),
    SubmissionCase(
        ("-vv",),
        errors="sbatch: defined options\nsbatch: -------------------- --------------------\nsbatch: hold                : set\nsbatch: parsable            : set\nsbatch: verbose             : 2\nsbatch: wrap                : true\nsbatch: -------------------- --------------------\nsbatch: end of defined options\nsbatch: debug:  propagating RLIMIT_CPU=18446744073709551615\nsbatch: debug:  propagating RLIMIT_FSIZE=18446744073709551615\nsbatch: debug:  propagating RLIMIT_DATA=18446744073709551615\nsbatch: debug:  propagating RLIMIT_STACK=8388608\nsbatch: debug:  propagating RLIMIT_CORE=0\nsbatch: debug:  propagating RLIMIT_RSS=18446744073709551615\nsbatch: debug:  propagating RLIMIT_NPROC=96365\nsbatch: debug:  propagating RLIMIT_NOFILE=20000\nsbatch: debug:  propagating RLIMIT_MEMLOCK=8388608\nsbatch: debug:  propagating RLIMIT_AS=18446744073709551615\nsbatch: debug:  propagating SLURM_PRIO_PROCESS=0\nsbatch: debug:  propagating UMASK=0022\n",
    ),
    SubmissionCase(
        (
            "-p",
            "cpu",
        ),
        environment={"SBATCH_PARTITION": "gpu"},
        fields={"TimeLimit": "UNLIMITED", "Partition": "cpu"},
    ),
    SubmissionCase(
        ("-O", "-n4", "-c2"),
        fields={"NumNodes": "1-4", "NumTasks": "4", "CPUs/Task": "2", "MinCPUsNode": "2", "TresPerTask": "cpu=2"},
    ),
    SubmissionCase(
        ("-O", "-N2", "-n4"),
        fields={"NumNodes": "2-2", "NumCPUs": "2", "NumTasks": "4", "ReqTRES": "cpu=2,mem=200M,node=2,billing=2"},
    ),
    SubmissionCase(
        ("--gpus=2", "--cpus-per-gpu=2", "-n2"),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "CpusPerTres": "gres/gpu:2",
            "TresPerJob": "gres/gpu:2",
        },
    ),
    SubmissionCase(
        ("--gres=gpu:2", "--cpus-per-gpu=3", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "12",
            "NumTasks": "2",
            "ReqTRES": "cpu=12,mem=1200M,node=2,billing=12,gres/gpu=4",
            "CpusPerTres": "gres/gpu:3",
            "TresPerNode": "gres/gpu:2",
        },
    ),
    SubmissionCase(
        ("--gpus-per-task=2", "--cpus-per-gpu=2", "-n3"),
        fields={
            "NumNodes": "1-3",
            "NumCPUs": "12",
            "NumTasks": "3",
            "CPUs/Task": "4",
            "ReqTRES": "cpu=12,mem=1200M,node=1,billing=12,gres/gpu=6",
            "MinCPUsNode": "4",
            "CpusPerTres": "gres/gpu:2",
            "TresBind": "gres/gpu:per_task:2",
            "TresPerTask": "gres/gpu=2",
        },
    ),
    SubmissionCase(
        ("--gres=gpu:2", "--mem-per-gpu=100", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=400M,node=2,billing=2,gres/gpu=4",
            "MinMemoryTRES": "100M",
            "MemPerTres": "gres/gpu:100",
            "TresPerNode": "gres/gpu:2",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--gpus-per-task=2", "-n2", "--mem-per-gpu=1G"),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=4G,node=1,billing=2,gres/gpu=4",
            "MinMemoryTRES": "1G",
            "MemPerTres": "gres/gpu:1024",
            "TresBind": "gres/gpu:per_task:2",
            "TresPerTask": "gres/gpu=2",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--gpus=2", "--mem-per-gpu=0"),
        fields={
            "ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2",
            "MinMemoryTRES": "0",
            "MemPerTres": "gres/gpu:0",
            "TresPerJob": "gres/gpu:2",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--mem=0", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=32000M,node=2,billing=2",
            "MinMemoryNode": "0",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("-p", "cpu", "--mem=0"),
        fields={
            "TimeLimit": "UNLIMITED",
            "Partition": "cpu",
            "ReqTRES": "cpu=1,mem=32000M,node=1,billing=1",
            "MinMemoryNode": "0",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--mem=0", "-w", "n5"),
        fields={
            "ReqNodeList": "n5",
            "ReqTRES": "cpu=1,mem=16000M,node=1,billing=1",
            "MinMemoryNode": "0",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--mem=0", "-n20"),
        fields={
            "NumNodes": "2-20",
            "NumCPUs": "20",
            "NumTasks": "20",
            "ReqTRES": "cpu=20,mem=16000M,node=1,billing=20",
            "MinMemoryNode": "0",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--gpus=2", "--gpus-per-node=1"),
        fields={
            "NumNodes": "2-2",
            "NumTasks": "2",
            "ReqTRES": "cpu=1,mem=100M,node=2,billing=1,gres/gpu=2",
            "TresPerJob": "gres/gpu:2",
            "TresPerNode": "gres/gpu:1",
        },
    ),
    SubmissionCase(
        ("--gpus=4", "--gpus-per-node=2", "-n4"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=2,billing=4,gres/gpu=4",
            "TresPerJob": "gres/gpu:4",
            "TresPerNode": "gres/gpu:2",
        },
    ),
    SubmissionCase(
        ("--gpus=2", "--gpus-per-task=1", "-n2"),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2,gres/gpu=2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerJob": "gres/gpu:2",
            "TresPerTask": "gres/gpu=1",
        },
    ),
    SubmissionCase(
        ("--gpus-per-task=1", "--gpus=4", "--cpus-per-gpu=2"),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "8",
            "NumTasks": "4",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=8,mem=800M,node=1,billing=8,gres/gpu=4",
            "MinCPUsNode": "2",
            "CpusPerTres": "gres/gpu:2",
            "TresBind": "gres/gpu:per_task:1",
            "TresPerJob": "gres/gpu:4",
            "TresPerTask": "gres/gpu=1",
        },
    ),
    SubmissionCase(
        ("--mem-per-gpu=1G", "--gpus-per-socket=2", "--sockets-per-node=1", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=4G,node=2,billing=2,gres/gpu=4",
            "Socks/Node": "1",
            "MinMemoryTRES": "1G",
            "MemPerTres": "gres/gpu:1024",
            "TresPerSocket": "gres/gpu:2",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("--gpus-per-socket=1", "--sockets-per-node=2"),
        fields={"ReqTRES": "cpu=1,mem=100M,node=1,billing=1,gres/gpu=2", "Socks/Node": "2", "TresPerSocket": "gres/gpu:1"},
    ),
    SubmissionCase(
        ("-N2-4", "-c3"),
        fields={
            "NumNodes": "2-4",
            "NumCPUs": "3",
            "NumTasks": "2",
            "CPUs/Task": "3",
            "ReqTRES": "cpu=3,mem=300M,node=2,billing=3",
            "MinCPUsNode": "3",
            "TresPerTask": "cpu=3",
        },
    ),
    SubmissionCase(
        ("-N2-4", "-O"),
        fields={"NumNodes": "2-4", "NumCPUs": "2", "NumTasks": "2", "ReqTRES": "cpu=2,mem=200M,node=2,billing=2"},
    ),
    SubmissionCase(
        ("-N2-4", "-O", "-n8"),
        fields={"NumNodes": "2-4", "NumCPUs": "2", "NumTasks": "8", "ReqTRES": "cpu=2,mem=200M,node=2,billing=2"},
    ),
    SubmissionCase(
        ("-N2-4", "--ntasks-per-node=2"),
        fields={
            "NumNodes": "2-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=2,billing=4",
            "NtasksPerN:B:S:C": "2:0:*:*",
            "MinCPUsNode": "2",
        },
    ),
    SubmissionCase(
        ("-N2-4", "--mem=100"),
        fields={
            "NumNodes": "2-4",
            "NumTasks": "2",
            "ReqTRES": "cpu=1,mem=200M,node=2,billing=1",
            "MinMemoryNode": "100M",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("-n12", "-N2-3"),
        fields={"NumNodes": "2-3", "NumCPUs": "12", "NumTasks": "12", "ReqTRES": "cpu=12,mem=1200M,node=2,billing=12"},
    ),
    SubmissionCase(
        ("-n8", "--ntasks-per-node=3", "-N2-4"),
        fields={
            "NumNodes": "2-4",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8",
            "NtasksPerN:B:S:C": "3:0:*:*",
            "MinCPUsNode": "3",
        },
    ),
    SubmissionCase(
        ("-n3", "-N1", "--ntasks-per-node=4"),
        fields={
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "4",
        },
    ),
    SubmissionCase(
        ("-n1", "-c2", "-N1", "--ntasks-per-node=4"),
        fields={
            "NumCPUs": "2",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "2",
            "TresPerTask": "cpu=2",
        },
    ),
    SubmissionCase(
        ("-n3", "-c2", "-N1", "--ntasks-per-node=4"),
        fields={
            "NumCPUs": "6",
            "NumTasks": "3",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=6,mem=600M,node=1,billing=6",
            "NtasksPerN:B:S:C": "4:0:*:*",
            "MinCPUsNode": "8",
            "TresPerTask": "cpu=2",
        },
    ),
    SubmissionCase(
        ("-n40",),
        fields={"NumNodes": "3-40", "NumCPUs": "40", "NumTasks": "40", "ReqTRES": "cpu=40,mem=4000M,node=1,billing=40"},
    ),
    SubmissionCase(
        ("-N3", "-n40"),
        fields={"NumNodes": "3-3", "NumCPUs": "40", "NumTasks": "40", "ReqTRES": "cpu=40,mem=4000M,node=3,billing=40"},
    ),
    SubmissionCase(
        ("-n20", "--mem=200"),
        fields={
            "NumNodes": "2-20",
            "NumCPUs": "20",
            "NumTasks": "20",
            "ReqTRES": "cpu=20,mem=200M,node=1,billing=20",
            "MinMemoryNode": "200M",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(
        ("-w", "n1,n2,n3", "-N2"),
        fields={
            "ReqNodeList": "n[1-3]",
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
        },
    ),
    SubmissionCase(
        ("-w", "n6,n7,n8", "-n2"),
        errors="sbatch: warning: can't run 2 processes on 3 nodes, setting nnodes to 2\n",
        fields={
            "ReqNodeList": "n[6-8]",
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
        },
    ),
    SubmissionCase(
        ("-O", "-N2-4", "--cpus-per-gpu=2", "--gpus=4"),
        fields={
            "NumNodes": "2-4",
            "NumCPUs": "8",
            "NumTasks": "2",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8,gres/gpu=4",
            "CpusPerTres": "gres/gpu:2",
            "TresPerJob": "gres/gpu:4",
        },
    ),
    SubmissionCase(
        ("--mincpus=3", "-n2"),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=1,billing=2",
            "MinCPUsNode": "3",
        },
    ),
    SubmissionCase(
        ("--mincpus=3", "-c4"),
        fields={
            "NumNodes": "1",
            "NumCPUs": "4",
            "CPUs/Task": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4",
            "MinCPUsNode": "4",
            "TresPerTask": "cpu=4",
        },
    ),
    SubmissionCase(
        ("--gpus=2", "--ntasks-per-gpu=2"),
        fields={
            "NumNodes": "1-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=1,billing=4,gres/gpu=2",
            "TresPerJob": "gres/gpu:2",
            "NtasksPerTRES": "2",
        },
    ),
    SubmissionCase(
        ("--gpus-per-node=2", "--ntasks-per-gpu=2", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "8",
            "NumTasks": "8",
            "ReqTRES": "cpu=8,mem=800M,node=2,billing=8,gres/gpu=4",
            "TresPerNode": "gres/gpu:2",
            "NtasksPerTRES": "2",
        },
    ),
    SubmissionCase(
        ("--gres=gpu:2", "--gpus=1"),
        code=1,
        output="",
        errors="sbatch: error: Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket\nsbatch: error: Invalid generic resource (gres) specification\n",
    ),
    SubmissionCase(
        ("--gres=gpu:2", "--gpus=3"),
        code=1,
        output="",
        errors="sbatch: error: Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node\nsbatch: error: Invalid generic resource (gres) specification\n",
    ),
    SubmissionCase(
        ("--gres=gpu:a100:2", "--gpus=4"),
        code=1,
        output="",
        errors="sbatch: error: Invalid GRES specification (with and without type identification)\n",
    ),
    SubmissionCase(
        ("--gpus-per-node=2", "--gres=gpu:1", "-N2"),
        code=1,
        output="",
        errors="sbatch: fatal: --gpus-per-node and --gres=gpu are mutually exclusive.\n",
    ),
    SubmissionCase(
        ("-c2", "--cpus-per-gpu=4", "--gpus=1"),
        code=1,
        output="",
        errors="sbatch: fatal: --cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive\n",
    ),
    SubmissionCase(
        ("--gpus-per-socket=1", "--ntasks-per-gpu=1"),
        code=1,
        output="",
        errors="sbatch: fatal: --gpus-per-socket is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU\n",
    ),
    SubmissionCase(
        ("--kill-on-invalid-dep=no", "--spread-job", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
            "KillOnInvalidDependent": "No",
            "SpreadJob": "Yes",
        },
    ),
    SubmissionCase(("--oom-kill-step=0",), fields={"OOMKillStep": "0"}),
    SubmissionCase(("--container-id=u",), fields={"ContainerType": "(null)", "Container": "(null)", "ContainerID": "u"}),
    SubmissionCase(("--container=",), fields={"ContainerType": "(null)", "Container": "", "ContainerID": "(null)"}),
    SubmissionCase(("--container-type=y",), fields={"ContainerType": "y", "Container": "(null)", "ContainerID": "(null)"}),
    SubmissionCase(("--extra=",), fields={"Extra": ""}),
    SubmissionCase(("--comment=",), fields={"Comment": ""}),
    SubmissionCase(("--bb=",), fields={"BurstBuffer": ""}),
    SubmissionCase(("--cluster-constraint=",), fields={"ClusterFeatures": ""}),
    SubmissionCase(("--prefer=",), fields={"Prefer": ""}),
    SubmissionCase(("--gres-flags=disable-binding",), fields={"GresEnforceBind": "No"}),
    SubmissionCase(("--gres-flags=enforce-binding",), fields={"GresEnforceBind": "Yes"}),
    SubmissionCase(("--gres-flags=multiple-tasks-per-sharing",), fields={"GresOneTaskPerSharing": "No"}),
    SubmissionCase(
        ("--gres-flags=one-task-per-sharing",),
        code=255,
        output="",
        errors="sbatch: error: In order to use --gres-flags=one-task-per-sharing you must also have SelectTypeParameters=MULTIPLE_SHARING_GRES_PJ in your slurm.conf\n",
    ),
    SubmissionCase(
        ("--segment=2", "-N4", "--consolidate-segments", "--spread-segments"),
        fields={
            "NumNodes": "4-4",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=4,billing=4",
            "SegmentSize": "2",
            "SpreadSegments": "Yes",
            "ConsolidateSegments": "Yes",
        },
    ),
    SubmissionCase(("--batch=ib", "-C", "ib"), fields={"BatchFeatures": "ib", "Features": "ib"}),
    SubmissionCase(
        (
            "--switches=1@5",
            "--bb=x",
            "--container=x",
            "--mail-type=END",
            "--gpus=2",
            "--ntasks-per-gpu=1",
            "--mem-per-gpu=2",
            "--cpus-per-gpu=2",
            "--gpu-freq=low",
        ),
        fields={
            "NumNodes": "1-2",
            "NumCPUs": "4",
            "NumTasks": "2",
            "ReqTRES": "cpu=4,mem=4M,node=1,billing=4,gres/gpu=2",
            "MinMemoryTRES": "2M",
            "Switches": "1@00:05:00",
            "BurstBuffer": "x",
            "CpusPerTres": "gres/gpu:2",
            "MemPerTres": "gres/gpu:2",
            "TresFreq": "gpu:low",
            "TresPerJob": "gres/gpu:2",
            "MailUser": "root",
            "MailType": "END",
            "NtasksPerTRES": "1",
            "ContainerType": "(null)",
            "Container": "x",
            "ContainerID": "(null)",
            "MinMemoryCPU": None,
        },
    ),
    SubmissionCase(("-J", "a b", "-d", "singleton"), fields={"JobName": "a b", "Dependency": "singleton(unfulfilled)"}),
    SubmissionCase(("-d", "singleton?afterany:1"), fields={"Dependency": "singleton(unfulfilled)?afterany:1(unfulfilled)"}),
    SubmissionCase(
        ("--mail-type=ALL", "--mail-user="),
        fields={"MailUser": "root", "MailType": "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"},
    ),
    SubmissionCase(
        ("--tres-per-task=cpu:2", "-n3", "--mem-per-cpu=50"),
        fields={
            "NumNodes": "1-3",
            "NumCPUs": "6",
            "NumTasks": "3",
            "CPUs/Task": "2",
            "ReqTRES": "cpu=6,mem=300M,node=1,billing=6",
            "MinCPUsNode": "2",
            "MinMemoryCPU": "50M",
            "TresPerTask": "cpu:2",
        },
    ),
    SubmissionCase(
        ("--exclusive=user", "-N2-3"),
        fields={"NumNodes": "2-3", "NumTasks": "2", "ReqTRES": "cpu=1,mem=100M,node=2,billing=1", "Exclusive": "USER"},
    ),
    SubmissionCase(
        ("--ntasks-per-socket=2", "-n4", "-N2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "4",
            "NumTasks": "4",
            "ReqTRES": "cpu=4,mem=400M,node=2,billing=4",
            "NtasksPerN:B:S:C": "0:0:2:*",
        },
    ),
    SubmissionCase(
        ("--cores-per-socket=2", "-n3"),
        fields={
            "NumNodes": "1-3",
            "NumCPUs": "3",
            "NumTasks": "3",
            "ReqB:S:C:T": "0:0:2:*",
            "ReqTRES": "cpu=3,mem=300M,node=1,billing=3",
        },
    ),
    SubmissionCase(
        ("--threads-per-core=1", "-N2", "-n2"),
        fields={
            "NumNodes": "2-2",
            "NumCPUs": "2",
            "NumTasks": "2",
            "ReqB:S:C:T": "0:0:*:1",
            "ReqTRES": "cpu=2,mem=200M,node=2,billing=2",
        },
    ),
)
