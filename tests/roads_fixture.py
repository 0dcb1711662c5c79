"""Roads between places, and rules from which `derive` concludes what can be reached."""

from __future__ import annotations

from hapax.kb.records import FactRecord, Source

ROADS = """
given road(Place, Place): "a road leads from [1] to [2]" / "no road leads from [1] to [2]" / "does a road lead there?"
given reaches(Place, Place): "[2] can be reached from [1]" / "[2] cannot be reached from [1]" / "can it be reached?"
@name step
@generic none
road(Place A, Place B) -> reaches(Place A, Place B)
@name further
@generic none
road(Place A, Place B) & reaches(Place B, Place C) -> reaches(Place A, Place C)
"""


def road(first: str, second: str) -> FactRecord:
    return FactRecord("road", (first, second), ("Place", "Place"), Source.GIVEN)
