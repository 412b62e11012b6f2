"""Host lists, patterns, programs, texts and frames: the small pure parts of stepd."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from slurmk import wire
from slurmk.stepd import hosts, messages, output, ports, texts
from slurmk.stepd.environment import binding_lines, bound, gpu_binding, path_with, requested_variables, task_variables
from slurmk.stepd.layout import Refused, parse_gres
from slurmk.stepd.programs import Misconfigured, multiple


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["n1", "n2", "n3", "n5", "login"], "n[1-3,5],login"),
        (["n5"], "n5"),
        (["n09", "n10"], "n[09-10]"),
        (["n9", "n10"], "n[9-10]"),
        (["a", "b"], "a,b"),
        ([], ""),
    ],
)
def test_compressed_names(names: list[str], text: str) -> None:
    assert hosts.compress(names) == text
    assert hosts.expand(text) == names


@given(some.lists(some.integers(0, 300), unique=True).map(sorted))
def test_names_survive_compression(numbers: list[int]) -> None:
    names = [f"node{number:03d}" for number in numbers]
    assert hosts.expand(hosts.compress(names)) == names


@pytest.mark.parametrize("text", ["n[1-", "n]", "n[a-b]", "n[1-99999999]"])
def test_bad_names(text: str) -> None:
    with pytest.raises(ValueError):
        hosts.expand(text)


def test_counts() -> None:
    assert hosts.counts([2, 2, 1]) == "2(x2),1"
    assert hosts.counts([3]) == "3"


VALUES = {"j": "42", "A": "40", "a": "7", "t": "3", "N": "n1", "n": "0", "s": "batch", "u": "alice", "x": "name"}


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("slurm-%j.out", "slurm-42.out"),
        ("%A_%a", "40_7"),
        ("%4j.%3t", "0042.003"),
        ("%x-%u-%N", "name-alice-n1"),
        ("100%%", "100%"),
        ("a\\%j", "a%j"),
        ("%5x", "name"),
        ("%z%", "%z%"),
    ],
)
def test_patterns(pattern: str, name: str) -> None:
    assert output.fill(pattern, VALUES) == name


def test_patterns_that_differ_by_task() -> None:
    assert output.differs_by_task("o.%t")
    assert output.differs_by_task("%N")
    assert not output.differs_by_task("%j.%%t")


def test_programs_of_tasks() -> None:
    text = '# comment\n0 echo zero %t %o\n1-2 printf %t,%o\n* other "a b"\n'
    assert multiple(text, 4, "many.conf") == [
        ["echo", "zero", "0", "0"],
        ["printf", "1,0"],
        ["printf", "2,1"],
        ["other", '"a', 'b"'],
    ]
    with pytest.raises(Misconfigured, match=r"Configuration file one\.conf invalid, no record for task id 1"):
        multiple("0 echo\n", 2, "one.conf")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (r"a\ b i'j k'l 'a b'c", ["a b", "ij kl", "a bc"]),
        (r"""e"f g"h "" '' $HOME ~ *""", ['e"f', 'g"h', '""', "", "$HOME", "~", "*"]),
        ("%o %t %T %%t 5%% %", ["0", "0", "", "t", "5", ""]),
        ("'%t %o' 'x%ty'z%t", ["%t %o", "x%tyz0"]),
        (r"back\\slash x\ty end", ["back\\slash", "xty", "end"]),
        ("'un closed", []),
        (r"'in\'q'", []),
    ],
)
def test_words_of_programs(program: str, words: list[str]) -> None:
    assert multiple(f"0 {program}\n", 1, "m") == [words]


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("0 echo a\n0-1 echo b\n", 2, ["Duplicate record for task 0"]),
        ("# first\n\n0 echo a\n1,0 echo b\n", 4, ["Duplicate record for task 0"]),
        ("0 echo a\\\n b\n0 echo c\n", 3, ["Duplicate record for task 0"]),
        ("1,1 echo a\n", 1, ["Duplicate record for task 1"]),
        ("* echo a\n0 echo b\n", 2, ["Task range specification with asterisk must be last"]),
        ("0-2 echo a\n", 1, ["Invalid task id, 2 >= ntasks"]),
        ("-1 echo a\n", 1, ["Invalid task id, -1 < 0"]),
        ("x echo a\n", 1, ["Invalid task range specification (x)"]),
        ("0 echo a\n1-x echo a\n", 2, ["Invalid task range specification"]),
        ("1-0 echo a\n", 1, ["Invalid task range, 1-0"]),
        ("0 echo a\n1\n", 2, []),
    ],
)
def test_records_of_programs_that_cannot_be(text: str, line: int, why: list[str]) -> None:
    with pytest.raises(Misconfigured) as refused:
        multiple(text, 2, "m")
    assert refused.value.lines == [*why, f"Line {line} of configuration file m invalid"]


def test_records_of_programs_that_can_be() -> None:
    assert multiple("0\techo a\n* echo b\n* echo c\n", 2, "m") == [["echo", "a"], ["echo", "b"]]
    assert multiple("0,,1, echo a\n", 2, "m") == [["echo", "a"], ["echo", "a"]]


def test_endings() -> None:
    assert texts.ending(3 << 8) == "Exited with exit code 3"
    assert texts.ending(signal.SIGKILL) == "Killed"
    assert texts.ending(signal.SIGSEGV | 0x80) == "Segmentation fault (core dumped)"
    assert texts.exit_code(signal.SIGTERM) == 143
    assert texts.tasks([2, 0, 3]) == "tasks 0,2-3"


def test_cancelled_as_the_reference_says_it() -> None:
    line = texts.cancelled("JOB 5", "n1", texts.TIME_LIMIT, 0.5).decode()
    assert line.endswith("00.500] error: *** JOB 5 ON n1 CANCELLED AT 1970-01-01T" + line[12:20] + " DUE TO TIME LIMIT ***\n")


def test_gres() -> None:
    assert parse_gres("gres/gpu:a100:2,gres:shard:1,gpu=3,x") == [
        ("gpu", "a100", 2),
        ("shard", "", 1),
        ("gpu", "", 3),
        ("x", "", 1),
    ]


@pytest.mark.parametrize(
    ("request_", "bind", "devices"),
    [
        ({"gres_per_task": "gres/gpu:2"}, "per_task:2", [[0, 1], [2, 3], []]),
        ({"gres_per_task": "gres/gpu:a100:1"}, "per_task:1", [[0], [1], [2], [3], []]),
        ({"tasks_per_gpu": 2}, "single:2", [[0], [0], [1], [1], [2]]),
        ({"gres_per_task": "gres/gpu:1", "tres_bind": "gres/gpu:none"}, "none", [[0, 1, 2, 3]] * 2),
        ({"tres_bind": "gres/gpu:verbose,single:1"}, "single:1", [[0], [1]]),
        ({"tres_bind": "gres/gpu:map_gpu:3,1*2"}, "map_gpu:3,1*2", [[3], [1], [1], [3]]),
        ({"tres_bind": "gres/gpu:map_gpu:9"}, "map_gpu:9", [[]]),
        ({"tres_bind": "gres/gpu:verbose,map:1,0"}, "map:1,0", [[1], [0]]),
        ({"tres_bind": "gres/gpu:mask_gpu:0x3,c"}, "mask_gpu:0x3,c", [[0, 1], [2, 3], [0, 1]]),
        ({"tres_bind": "gres/gpu:map_gpu:1*0"}, "map_gpu:1*0", [[0, 1, 2, 3]]),
        ({"tres_bind": "gres/gpu:single:x"}, "single:x", [[0, 1, 2, 3]]),
        ({"tres_bind": "gres/shard:single:1"}, "", [[0, 1, 2, 3]]),
    ],
)
def test_gpus_of_each_task(request_: dict[str, object], bind: str, devices: list[list[int]]) -> None:
    assert gpu_binding(request_) == bind
    assert [bound([0, 1, 2, 3], bind, local) for local in range(len(devices))] == devices


@given(some.lists(some.integers(0, 16), min_size=1, unique=True), some.text("0123456789x*,:", max_size=8), some.integers(0, 99))
def test_every_task_has_some_of_the_steps_gpus(devices: list[int], argument: str, local: int) -> None:
    for way in ("single:", "per_task:", "map_gpu:", "mask_gpu:", ""):
        assert set(bound(devices, way + argument, local)) <= set(devices)
        gres = [{"name": "gpu", "count": len(devices), "indices": devices}]
        told = task_variables(local, local, gres, way + argument)
        own = [int(word) for word in told.get("CUDA_VISIBLE_DEVICES", str(devices[0])).split(",")]
        assert set(own) <= set(devices)


def test_lines_about_gpus() -> None:
    gres = [{"name": "gpu", "count": 2, "indices": [0, 1]}]
    assert binding_lines(1, gres, "map:1,0", verbose=True) == [
        "gpu-bind: usable_gres=0x1; bit_alloc=0x3; local_inx=0; global_list=0; local_list=0"
    ]
    assert binding_lines(1, gres, "per_task:2", verbose=False) == [
        "error: Not enough gres to bind 2 per task",
        "error: Bind request gres/gpu:per_task:2 does not specify any devices within the allocation for task 1. "
        "Binding to the first device in the allocation instead.",
    ]
    assert binding_lines(0, [], "single:1", verbose=True) == []


def test_ports_of_steps() -> None:
    job = {"job": 5, "parameters": {"MpiParams": "ports=12000-12009"}}
    taken: set[int] = set()
    first = ports.reserve(job, {}, 2, taken)
    second = ports.reserve(job, {"reserve_ports": 4}, 2, taken)
    assert [len(ports.numbers(text)) for text in (first, second)] == [3, 4]
    assert not set(ports.numbers(first)) & set(ports.numbers(second))
    assert taken == {*ports.numbers(first), *ports.numbers(second)}
    with pytest.raises(Refused, match="more ports than can be reserved"):
        ports.reserve(job, {"reserve_ports": 4}, 2, taken)
    assert ports.reserve({"job": 5}, {}, 2, taken) == ""
    with pytest.raises(Refused):
        ports.reserve({"job": 5}, {"reserve_ports": 2}, 2, taken)


def test_variables_of_a_bound_task() -> None:
    gres = [{"name": "gpu", "type": "a100", "count": 2, "indices": [2, 3]}]
    found = task_variables(5, 1, gres, "single:1")
    assert (found["SLURM_PROCID"], found["CUDA_VISIBLE_DEVICES"], found["SLURM_STEP_GPUS"]) == ("5", "3", "3")
    assert "CUDA_VISIBLE_DEVICES" not in task_variables(5, 1, gres)


def test_variables_of_a_request() -> None:
    found = requested_variables({"tasks": 4, "cpus_per_task": 2, "tres_per_job": "gres/gpu:2", "export": "NONE"})
    assert found["SLURM_NTASKS"] == found["SLURM_NPROCS"] == "4"
    assert found["SLURM_TRES_PER_TASK"] == "cpu=2"
    assert found["SLURM_GPUS"] == "2"
    assert found["SLURM_GET_USER_ENV"] == "1"


def test_our_commands_come_first_unless_they_do_already(tmp_path: object) -> None:
    assert path_with("/a:/ours", "/ours") == "/a:/ours"
    assert path_with("/a", "/ours") == "/ours:/a"
    (tmp_path / "srun").touch()  # type: ignore[operator]
    assert path_with(f"{tmp_path}:/ours", "/ours") == f"/ours:{tmp_path}:/ours"


@given(some.lists(some.tuples(some.integers(1, 100), some.binary(max_size=50))), some.integers(1, 7))
def test_frames_arrive_whole_however_they_are_cut(frames: list[tuple[int, bytes]], size: int) -> None:
    data = b"".join(wire.encode(kind, payload) for kind, payload in frames)
    reader = messages.Frames()
    found = [frame for start in range(0, len(data), size) for frame in reader.feed(data[start : start + size])]
    assert found == frames


@pytest.mark.parametrize("payload", [b"", b"[]", b"{", b"\xff", b"[" * 100000])
def test_messages_that_are_none(payload: bytes) -> None:
    with pytest.raises(wire.WireError):
        messages.unpack(payload)


def test_only_the_secret_gives_the_proof() -> None:
    challenge = messages.nonce()
    given = messages.proof("00ff", challenge, "step")
    assert messages.proven("00ff", challenge, "step", given)
    assert not messages.proven("00fe", challenge, "step", given)
    assert not messages.proven("00ff", challenge, "peer", given)
    assert not messages.proven("00ff", messages.nonce(), "step", given)
    assert not messages.proven("00ff", challenge, "step", None)
