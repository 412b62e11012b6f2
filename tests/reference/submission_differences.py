"""Submissions that slurmk answers differently on purpose, and why. The list is short."""

from __future__ import annotations

import re

from submissions import SubmissionCase

_WRAPPED = "a number beyond 32 bits is refused or kept, where the original goes on with what is left of it"
_NOTHING = "no nodes and no tasks are as if not said, where the original keeps a job of nothing"
_HELP = "the help is in slurmk's words"
_EMPTY_ARRAY = "an empty array is none, where the original names the output after the element 4294967294"

_OLD_FORM = "a form of older releases is taken, with a warning"

DIFFERENT: dict[str, str] = {
    r"-t (-5|99999999|42949672\d\d|71582788)": _WRAPPED,
    r"--(delay-boot|dependency|mem|mem-per-cpu|time|time-min|tmp)=99999999999": _WRAPPED,
    r"(--extra-node-info=0|-B 1:0|-B 1:1:0|-B 0:0:0|--nodes=0|--nodelist=)": _NOTHING,
    r"--array=|-a ,": _EMPTY_ARRAY,
    r"--(mem-bind|hint)=help": _HELP,
    r"--partition=(debug,debug|,debug|debug,)": "a partition is shown once, without empty words",
    r"-[wx] 'n\[\[1-2\]\]'": "brackets in brackets are read alike for nodes that are wanted and that are not",
    r"--power=x|--gres=gres:gpu(:2)?|--get-user-env=1": _OLD_FORM,
    r"--ignore-signals=-1": "no signal has this number",
    r"--external": "external jobs are refused",
    r"-vv": "the debug lines of the original's plugins",
}
"""Ends of command lines as regular expressions, and the reason of the difference."""

IN_SCRIPTS: dict[str, str] = {
    "#SBATCH --get-user-env=": _OLD_FORM,
    "#SBATCH --power=": _OLD_FORM,
    "#SBATCH --gres=gres:": _OLD_FORM,
    "#SBATCH --share\n": _OLD_FORM,
    "#SBATCH --autocomplete=": "what is answered without submitting is asked for on the command line only",
    "#SBATCH --array=\n": _EMPTY_ARRAY,
    "#SBATCH --nodes=2,\n": _NOTHING,
}
"""Directives whose answer differs, and the reason."""

_ENDS = {re.compile(rf"\A.* (?:{end})\Z", re.DOTALL): reason for end, reason in DIFFERENT.items()}


def reason_of(case: SubmissionCase) -> str | None:
    """Why this case differs; None for one that must not."""
    if case.run == "SBATCH_ARRAY_INX='' sbatch":
        return _EMPTY_ARRAY
    if case.script and (match := next((mark for mark in IN_SCRIPTS if mark in case.script), None)):
        return IN_SCRIPTS[match]
    if case.run == "salloc --get-user-env":
        return _OLD_FORM
    if case.command != "sbatch" and case.run.endswith(" --prefer="):
        return "an empty preference is none"
    return next((reason for end, reason in _ENDS.items() if end.match(case.run)), None)
