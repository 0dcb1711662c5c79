"""Inputs of any kind: seeds, pieces of two of them with anything between, and inputs that once broke a contract."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases


def text_of(data: bytes) -> str:
    """The bytes as text; invalid UTF-8 becomes lone surrogates."""
    return data.decode("utf-8", "surrogateescape")


def assert_explained(error: Exception) -> None:
    """An error has a message."""
    assert str(error).strip()


def check_any_input(
    check: Callable[[bytes], None], seeds: Sequence[bytes], crashes: Sequence[bytes] = (), number: int = 60
) -> None:
    """Check the seeds, inputs that once broke the contract, and so many variants of the seeds."""
    for data in (*seeds, *crashes):
        check(data)

    @settings(
        max_examples=cases(number),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_variants(seeds))
    def holds(data: bytes) -> None:
        check(data)

    holds()


def _variants(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """Two seeds cut anywhere and joined, with anything between them."""
    pieces = st.sampled_from(seeds)
    between = st.binary(max_size=8) | st.text(max_size=8).map(str.encode)

    def joined(first: bytes, second: bytes, cuts: tuple[int, int], between: bytes) -> bytes:
        return first[: cuts[0] % (len(first) + 1)] + between + second[cuts[1] % (len(second) + 1) :]

    cuts = st.tuples(st.integers(0, 500), st.integers(0, 500))
    return st.builds(joined, pieces, pieces, cuts, between)
