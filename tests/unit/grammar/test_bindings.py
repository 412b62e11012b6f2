"""Bindings of tasks to CPUs, as --cpu-bind takes and srun -v tells them."""

from __future__ import annotations

import pytest

from grammar.bindings import BindingError, check_cpu_binding, cpu_binding_type


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "(null type)"),
        ("none", "none"),
        ("no", "none"),
        ("rank", "(null type)"),
        ("verbose,cores", "verbose,cores"),
        ("v,none", "verbose,none"),
        ("q,boards", "boards"),
        ("map_cpu:0,1,2", "map_cpu"),
        ("mask_cpu:ff,ab,0xc", "mask_cpu"),
        ("verbose,mask_cpu:f,3", "verbose,mask_cpu"),
    ],
)
def test_kinds_of_cpu_bindings(text: str | None, told: str) -> None:
    check_cpu_binding(text or "none")
    assert cpu_binding_type(text) == told


@pytest.mark.parametrize("text", ["cores,nonsense", "map_cpu:", "verbose;cores", "threads,what:1"])
def test_what_is_no_cpu_binding(text: str) -> None:
    with pytest.raises(BindingError):
        check_cpu_binding(text)
