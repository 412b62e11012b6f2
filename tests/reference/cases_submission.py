"""sbatch, srun and salloc: the recorded submissions once more, now asked of both sides, with the job that came of them."""

from __future__ import annotations

from sides import Case
from submission_differences import reason_of
from submissions import CHANGING, FIELDS, SUBMISSIONS, SubmissionCase

DEFAULT_ACCOUNT = r"(?m)^Account=(phys|\(null\))$"
"""There are no accounts yet, so jobs have none unless they name one."""

OF_ACCOUNTS: dict[str, str] = {
    "sbatch -A ''": "no account is the default account",
    "sbatch --account=": "no account is the default account",
    "SBATCH_ACCOUNT='' sbatch": "no account is the default account",
}
"""Command lines whose answer differs as long as any account may be named, and why."""

TOLD = CHANGING.pattern.removesuffix(r"\n") + r"\n"
ANSWERED = r"(?m)^srun: Job \S+ step creation temporarily disabled.*\n"
"""What srun says while its job's nodes are made ready, on a busy machine."""

_UNKNOWN_ACCOUNT = "any account may be named as long as there are none"
_FIELDS = "|".join(FIELDS)


def _case(submission: SubmissionCase) -> Case:
    line = submission.line
    if submission.command == "sbatch":
        shown = f"scontrol show job $id | grep -oE '({_FIELDS})=[^ ]*'; scancel $id"
        command = f'id=$({line}); code=$?; echo "$id"; [ -z "$id" ] || {{ {shown}; }}; exit $code'
        if submission.bare:
            command = line
    else:
        command = f"{line} > shown; code=$?; grep -oE '({_FIELDS})=[^ ]*' shown | grep -v ^Priority; exit $code"
    differs = reason_of(submission) or OF_ACCOUNTS.get(submission.run)
    if differs is None and "Invalid account or account" in submission.errors:
        differs = _UNKNOWN_ACCOUNT
    return Case(
        command,
        files={} if submission.script is None else {"s.sh": submission.script},
        stdin=submission.stdin,
        title=submission.name,
        ignore=(DEFAULT_ACCOUNT,) if submission.command == "sbatch" else (DEFAULT_ACCOUNT, TOLD, ANSWERED),
        differs=differs or "",
    )


CASES: list[Case] = [_case(submission) for submission in SUBMISSIONS]
