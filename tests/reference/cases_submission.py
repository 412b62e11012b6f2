"""sbatch: the recorded submissions once more, now asked of both sides, with the job that came of them."""

from __future__ import annotations

from recorded_submissions import SUBMISSIONS, SubmissionCase
from sides import Case

FIELDS = (
    "JobName|Priority|Nice|Account|QOS|JobState|Reason|Requeue|BatchFlag|Reboot|TimeLimit|TimeMin|Deadline|Partition|ReqNodeList|"
    "ExcNodeList|NumNodes|NumTasks|ReqB:S:C:T|Socks/Node|CoreSpec|MinMemoryCPU|MinMemoryNode|MinTmpDiskNode|Features|"
    "DelayBoot|OverSubscribe|Exclusive|Contiguous|Licenses|Network|Command|WorkDir|StdErr|StdIn|StdOut|Comment|"
    "ArrayTaskId|ArrayTaskThrottle|TresPerJob|TresPerNode|TresPerSocket|TresPerTask|TresBind|TresFreq|CpusPerTres|"
    "MailUser|MailType|Switches"
)
"""What is compared of a job: the fields that its submission decides."""

DEFAULT_ACCOUNT = r"(?m)^Account=(phys|\(null\))$"
"""There are no accounts yet, so jobs have none unless they name one."""

DIFFERENT: dict[str, str] = {
    "-A ''": "no account is the default account",
    "--bbf=/nope": "refused because there are no burst buffers",
    "--prefer=x": "preferred features are recorded only",
    "--external": "external jobs are refused",
    "-vv": "the debug lines of the original's plugins",
    "-A nope": "any account may be named as long as there are none",
}
"""Arguments whose answer differs on purpose, and why."""


def _case(submission: SubmissionCase) -> Case:
    show = f"scontrol show job $id | grep -oE '({FIELDS})=[^ ]*'; scancel $id"
    return Case(
        f'id=$({submission.command}); code=$?; echo "$id"; [ -z "$id" ] || {{ {show}; }}; exit $code',
        files={} if submission.script is None else {"s.sh": submission.script},
        title=submission.command,
        ignore=(DEFAULT_ACCOUNT,),
        differs=next((reason for mark, reason in DIFFERENT.items() if f" {mark} " in f" {submission.command} "), ""),
    )


CASES: list[Case] = [_case(submission) for submission in SUBMISSIONS]
