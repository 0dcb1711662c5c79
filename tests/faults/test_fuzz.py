"""The contracts of fuzz/ hold for earlier crashes, for their seeds and for variants that Hypothesis makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_cases import cases

from fuzz import answers, goals, importers, prolog_codec, rules
from fuzz.common import CRASHES

TARGETS = {target.__name__.rpartition(".")[2]: target for target in (answers, goals, importers, prolog_codec, rules)}
KNOWN = [(name, path) for name in TARGETS for path in sorted((CRASHES / name).glob("*"))]
EXAMPLES = {"goals": 30, "prolog_codec": 30}
"""Of these fewer, because each asks Prolog."""


def variants(seeds: tuple[bytes, ...]) -> st.SearchStrategy[bytes]:
    """Two seeds cut anywhere and joined, with anything between them."""
    pieces = st.sampled_from(seeds)
    between = st.binary(max_size=8) | st.text(max_size=8).map(str.encode)

    def joined(first: bytes, second: bytes, cuts: tuple[int, int], between: bytes) -> bytes:
        return first[: cuts[0] % (len(first) + 1)] + between + second[cuts[1] % (len(second) + 1) :]

    cuts = st.tuples(st.integers(0, 500), st.integers(0, 500))
    return st.builds(joined, pieces, pieces, cuts, between)


@pytest.mark.parametrize(("name", "path"), KNOWN, ids=[f"{name}-{path.name}" for name, path in KNOWN])
def test_what_once_broke_a_contract_keeps_it(name: str, path: Path) -> None:
    """Every input that once broke a contract is handled."""
    TARGETS[name].check(path.read_bytes())


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_contracts_hold_for_any_input(name: str) -> None:
    """Any input gives a result that reads back as the same, or a documented error."""
    target = TARGETS[name]
    check: Callable[[bytes], None] = target.check
    for seed in target.SEEDS:
        check(seed)

    @settings(
        max_examples=cases(EXAMPLES.get(name, 60)),
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(variants(target.SEEDS))
    def holds(data: bytes) -> None:
        check(data)

    holds()


def test_crashes_are_of_targets_that_there_are() -> None:
    """Every folder of crashes belongs to a target, and there are crashes."""
    assert {path.name for path in CRASHES.iterdir()} <= set(TARGETS)
    assert KNOWN
