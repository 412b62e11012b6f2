"""GPUs asked for whole and in parts, as the reference was seen to refuse and to take them."""

from __future__ import annotations

import pytest

from grammar.arguments import parse_arguments
from grammar.options import OptionError, options_of
from slurmk.commands.submission import _check_parts_of_gpus, _task_resources, read_layers


def check(line: str, within: str = "") -> None:
    given, _ = parse_arguments("srun", options_of("srun"), line.split())
    options = read_layers("srun", {}, [given], 0.0)[0]
    values = dict(options.values)
    _task_resources("srun", options, values)
    _check_parts_of_gpus("srun", values, within)


@pytest.mark.parametrize(
    "line",
    [
        "--gres=mps:1,gpu:1",
        "--gres=shard:1 --gpus=1",
        "--gres=shard:1 --gpus-per-task=1 -n1",
        "--gres=mps:1 --gpus-per-socket=1 --sockets-per-node=1",
        "--tres-per-task=gres/shard:1 --gpus=1 -n1",
        "--tres-per-task=gres/gpu:1,gres/shard:1 -n1",
        "--gres=shard:1 --gpu-freq=high",
        "--tres-per-task=gres/shard:1 -n1 --gpu-freq=low",
    ],
)
def test_not_both_and_no_frequency(line: str) -> None:
    with pytest.raises(OptionError, match=r"^srun: error: Invalid generic resource \(gres\) specification$"):
        check(line)
    with pytest.raises(OptionError, match=r"Unable to create step for job 7: Invalid generic resource \(gres\) specification$"):
        check(line, within="7")


@pytest.mark.parametrize(
    "line",
    ["--gres=gpu:0,shard:1", "--gres=shard:1 --gpus=0", "--gres=shard:1 --gpu-bind=closest", "--gres=gpu:1 --gpu-freq=high"],
)
def test_what_does_not_meet_is_taken(line: str) -> None:
    check(line)
