"""``scontrol show assoc_mgr``: what the controller keeps of users, associations and QOS.

slurmk keeps none of them yet, which is what it says, as Slurm does of a controller without accounting.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmk.commands.scontrol_session import Session

PARTS = ("users", "assoc", "qos")
WORDS = {"users": "users", "assoc": "associations", "qos": "QOS"}
FILTERS = ("accounts", "users", "qos")


async def show_associations(session: Session, arguments: Sequence[str]) -> int:
    """``[users=…] [accounts=…] [qos=…] [flags=users,assoc,qos]``."""
    wanted: set[str] = set()
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            session.say(f"No value given for option {argument}\n")
            return 0
        key = key.lower()
        if key and "flags".startswith(key):
            for word in value.split(","):
                part = next((each for each in PARTS if word and each.startswith(word.lower())), None)
                if part is None:
                    session.say(f"invalid flag '{word}', valid options are 'Assoc, QOS, and/or Users'\n")
                    return 0
                wanted.add(part)
        elif not any(key and each.startswith(key) for each in FILTERS):
            return session.say(f"invalid entity: {argument} for keyword:show assoc_mgr\n")
    sections = [f"No {WORDS[part]} currently cached in Slurm.\n" for part in PARTS if not wanted or part in wanted]
    head = "Current Association Manager state\n"
    session.output.write(head + "".join(f"\n{section}\n" for section in sections))
    return 0
