"""``slurmk queues``: see, make and delete the queues of Kueue and Volcano that stand for partitions, accounts and QOS."""

from __future__ import annotations

from slurmk.commands.call import Call, Controller, Output

ACTIONS = ("diff", "apply", "delete")

NOTHING = {
    "diff": "the queues are as they should be",
    "apply": "the queues were as they should be",
    "delete": "there were no queues",
}


async def run(call: Call, controller: Controller, output: Output) -> int:
    """``queues diff|apply|delete [--force]``; for operators."""
    words = list(call.arguments)[1:]
    if not words or words[0] not in ACTIONS or words[1:] not in ([], ["--force"]):
        output.error("slurmk: error: queues takes diff, apply or delete, and --force\n")
        return 2
    if not call.caller.operator:
        output.error("slurmk: error: Access/permission denied\n")
        return 2
    text, code = await controller.queues(words[0], force="--force" in words)
    if text.startswith("slurmk: error: "):
        output.error(text)
    else:
        output.write(text or f"slurmk: {NOTHING[words[0]]}\n")
    return code
