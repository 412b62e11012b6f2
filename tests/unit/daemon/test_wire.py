"""Frames and lists of strings survive the way, and nothing else passes for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmk import wire

strings = st.lists(st.binary().filter(lambda data: b"\0" not in data))


@given(st.integers(0, 255), st.binary(max_size=5000))
def test_frame(kind: int, payload: bytes) -> None:
    data = wire.encode(kind, payload)
    assert wire.header(data[:5]) == (kind, len(payload))
    assert data[5:] == payload


@given(strings)
def test_strings(values: list[bytes]) -> None:
    assert wire.unpack_strings(wire.pack_strings(values)) == values


@given(st.binary(min_size=1).filter(lambda data: not data.endswith(b"\0")))
def test_strings_cut_short(data: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack_strings(data)


@given(st.integers(0, 255), st.integers(wire.MAXIMUM_FRAME + 1, 2**32 - 1))
def test_too_large(kind: int, length: int) -> None:
    with pytest.raises(wire.WireError):
        wire.header(bytes([kind]) + length.to_bytes(4, "big"))


def test_too_large_to_send() -> None:
    with pytest.raises(wire.WireError):
        wire.encode(wire.OUTPUT, bytes(wire.MAXIMUM_FRAME + 1))
