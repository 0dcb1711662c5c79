"""A search as others see it while it runs: its states, its pace and its pauses, by a clock that the test moves."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from golden_fixture import compared

from hapax.engine.search.progress import ProgressCounter
from hapax.engine.search.running import WatchedSearch
from hapax.kb import system
from hapax.kb.running import RunState, Wish
from hapax.llm_oracle.budget import CallStatistics

BEGAN = 5000.0


class Clock:
    """A clock that moves when somebody sleeps or the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seconds = BEGAN
        monkeypatch.setattr(system, "monotonic", lambda: self.seconds)
        monkeypatch.setattr(system, "now", lambda: datetime.fromtimestamp(1_700_000_000 + self.seconds, UTC))
        monkeypatch.setattr(system, "process_id", lambda: 77)
        monkeypatch.setattr(system, "sleep", self.sleep)
        monkeypatch.setattr("socket.gethostname", lambda: "here")

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


class Files:
    """The files of a run: states are kept, and wishes come from a list, the last of which stays."""

    def __init__(self) -> None:
        self.states: list[RunState] = []
        self.wishes: list[Wish | None] = [None]
        self.looks = 0

    def write(self, state: RunState) -> None:
        self.states.append(state)

    def wish(self) -> Wish | None:
        self.looks += 1
        return self.wishes.pop(0) if len(self.wishes) > 1 else self.wishes[0]


def journal() -> Any:
    statistics = CallStatistics(0, 0, 0, 0, None)
    return SimpleNamespace(total=SimpleNamespace(calls=0), statistics={"knowledge": statistics})


def state_text(state: RunState) -> str:
    figures = {**state.to_json(), "written": state.written - 1_700_000_000 - BEGAN}
    rounded = {name: round(figure, 3) if isinstance(figure, float) else figure for name, figure in figures.items()}
    return json.dumps(rounded)


def watched(chance: random.Random, clock: Clock) -> Iterator[str]:
    files, sent, display = Files(), journal(), ProgressCounter(clock=lambda: clock.seconds)
    search = WatchedSearch(files, sent, display)  # type: ignore[arg-type]
    search.started(3, 60)
    search.searching(["one"], 20)
    for step in range(25):
        clock.seconds += chance.choice([0.1, 0.15, 0.5, 1.0, 9.0, 31.0])
        match chance.randrange(6):
            case 0:
                search.expecting(chance.randrange(40))
            case 1:
                search.searching([f"rule {step}"], chance.randrange(30))
            case 2:
                files.wishes = chance.choice([[None], [Wish.PAUSE, Wish.PAUSE, None], [Wish.PAUSE] * 7 + [None]])
                yield f"{step} wanted {search.is_wanted}, {search.is_wanted}"
                search.wait()
                yield f"{step} waited until {clock.seconds - BEGAN:.2f}, wanted {search.is_wanted}, looks {files.looks}"
            case _:
                calls = chance.randrange(9)
                sent.total.calls += calls
                search.advanced(calls, chance.randrange(3), chance.randrange(4), chance.randrange(4))
        yield from (f"{step} {state_text(state)}" for state in files.states)
        files.states.clear()
    yield f"display {display.rules} {display.share:.3f} {display.accepted} {display.rejected}"


def test_states_of_a_search_are_written_as_read_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares, times left, paces over the last minute and counts, at most one state a second; a pause counts for nothing."""
    clock = Clock(monkeypatch)
    lines = []
    for seed in range(6):
        clock.seconds = BEGAN
        lines += [f"# {seed}", *watched(random.Random(seed), clock)]
    compared("search/watched", "\n".join(lines) + "\n")


def test_a_search_that_is_asked_to_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also out of a pause; a search in memory has no files, and nobody asks it for anything."""
    Clock(monkeypatch)
    files = Files()
    search = WatchedSearch(files, journal(), None)  # type: ignore[arg-type]
    for wishes in ([Wish.END], [Wish.PAUSE, Wish.PAUSE, Wish.END]):
        files.wishes = list(wishes)
        with pytest.raises(KeyboardInterrupt):
            search.wait()
    alone = WatchedSearch(None, journal(), None)
    alone.started(1, 1)
    alone.tick()
    alone.wait()

    assert not alone.is_wanted
