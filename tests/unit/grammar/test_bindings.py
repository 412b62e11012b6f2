"""Bindings of tasks to CPUs, as --cpu-bind takes and srun -v tells them."""

from __future__ import annotations

import pytest

from grammar.bindings import (
    BindingError,
    check_cpu_binding,
    check_gpu_binding,
    check_memory_binding,
    cpu_binding_type,
    is_tres_binding,
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "(null type)"),
        ("none", "none"),
        ("no", "none"),
        ("rank", "(null type)"),
        ("verbose,cores", "verbose,cores"),
        ("v,none", "verbose,none"),
        ("q,ldoms", "ldoms"),
        ("map_cpu:0,1,2", "map_cpu"),
        ("mask_cpu:ff,ab,0xc", "mask_cpu"),
        ("verbose,mask_cpu:f,3", "verbose,mask_cpu"),
    ],
)
def test_kinds_of_cpu_bindings(text: str | None, told: str) -> None:
    check_cpu_binding(text or "none")
    assert cpu_binding_type(text) == told


@pytest.mark.parametrize("text", ["cores,nonsense", "map_cpu:", "verbose;cores", "threads,what:1", "boards", "auto"])
def test_what_is_no_cpu_binding(text: str) -> None:
    with pytest.raises(BindingError):
        check_cpu_binding(text)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("map_cpu:1,2x", ["Failed to validate number: 2x, the offending character is x"]),
        ("map_cpu:0x1", ["Failed to validate number: 0x1, the offending character is x"]),
        ("mask_cpu:0x1,0xg", ["Failed to validate number: g, the offending character is g"]),
        ("map_cpu:1*x", ["Failed to validate number: *x, the offending character is x"]),
        ("map_cpu:1*", ["Invalid map_cpu multiplier: ", "Failed to expand list: '1*'"]),
        ("map_ldom:0-3", ["Failed to validate number: 0-3, the offending character is -"]),
    ],
)
def test_what_is_no_list_of_cpus(text: str, lines: list[str]) -> None:
    with pytest.raises(BindingError) as caught:
        check_cpu_binding(text)
    assert list(caught.value.lines) == lines


def test_lists_of_memory_are_repeated() -> None:
    check_memory_binding("verbose,map_mem:0*2,1")
    with pytest.raises(BindingError):
        check_memory_binding("map_mem:0x1")


@pytest.mark.parametrize(
    "text",
    [
        "map:0*2,1",
        "map_gpu:",
        "map:1*",
        "map:*2",
        "map:,1,,2",
        "mask:abc",
        "mask_gpu:0xABC*2,1",
        "mask:0x",
        "verbose,Single:1",
        "single:x",
        "closest",
        "map:1+gres/shard:single:2",
        "single:1+",
        "map:4294967296",
    ],
)
def test_gpu_bindings(text: str) -> None:
    check_gpu_binding(text)
    assert is_tres_binding(f"gres/gpu:{text}")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("map:0x1", ["Failed to validate 0x1, offending character is x"]),
        ("map:1*a", ["Failed to validate 1*a, offending character is a"]),
        ("mask:0X1", ["Failed to validate 0X1, offending character is X"]),
        ("mask:1,0x1g", ["Failed to validate 1g, offending character is g"]),
        ("map:1+gres/foo:map:z", ["Failed to validate z, offending character is z"]),
        ("map:1+foo", []),
        ("map:1*2*3", []),
        ("map:" + "9" * 9999, []),
        ("mask:1*a", []),
        ("mask:0xffffffffffffffff", []),
        ("single:-1", []),
        ("per_task", []),
        ("verbose,verbose,none", []),
        ("", []),
    ],
)
def test_what_is_no_gpu_binding(text: str, lines: list[str]) -> None:
    with pytest.raises(BindingError) as caught:
        check_gpu_binding(text)
    assert list(caught.value.lines) == lines


@pytest.mark.parametrize(
    "text", ["gres/gpu", "gres/gpu:", "gres:", "gpu:single:1", "gres/gpu:a:single:1", ",gres/gpu:single:1"]
)
def test_what_is_no_tres_binding(text: str) -> None:
    assert not is_tres_binding(text)
