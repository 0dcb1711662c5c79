"""Places of keys and values in JSON texts, and of texts that are made of their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from hapax.grammar.json_places import JsonPath, JsonSpans, PlacedText

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


def leaves(tree: object, path: JsonPath = ()) -> Iterator[tuple[JsonPath, object]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, (*path, key))
    elif isinstance(tree, list):
        for place, value in enumerate(tree):
            yield from leaves(value, (*path, place))
    else:
        yield path, tree


def keys(tree: object, path: JsonPath = ()) -> Iterator[JsonPath]:
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in members:
        if isinstance(tree, dict):
            yield (*path, key)
        yield from keys(value, (*path, key))


@given(trees, st.sampled_from([None, 0, 2]))
def test_each_value_and_key_has_its_place(tree: object, indent: int | None) -> None:
    """The text at the place of a path is the key or the value there, in lists and objects of any depth."""
    text = json.dumps(tree, ensure_ascii=False, indent=indent)
    spans = JsonSpans.of(text)

    assert {path: json.loads(text[start:end]) for path, (start, end) in spans.values.items()} == dict(leaves(tree))
    assert {path: json.loads(text[start:end]) for path, (start, end) in spans.keys.items()} == {
        path: path[-1] for path in keys(tree)
    }


def test_offsets_inside_a_text_are_known_unless_it_has_escapes() -> None:
    r"""The quotation marks are left out; behind an escape such as `\n` offsets would differ."""
    text = r'["plain", "a\nb", 7]'
    spans = JsonSpans.of(text)
    inside = spans.inside(spans.values[0,])

    assert inside is not None
    assert text[slice(*inside)] == "plain"
    assert spans.inside(spans.values[1,]) is None


def test_places_in_a_text_of_parts_are_those_of_the_original() -> None:
    """Each character of a part has the line and column of the part's span, from 1, and of the character behind it."""
    original = "first\nsecond line\nthird"
    placed = PlacedText(original)
    placed.add("AB", (0, 5))
    placed.add("C", (6, 12))
    placed.add("DEF", (18, 23))

    assert placed.text == "ABCDEF"
    assert [placed.spot(offset) for offset in range(6)] == [
        (1, 1, 1, 6), (1, 1, 1, 6), (2, 1, 2, 7), (3, 1, 3, 6), (3, 1, 3, 6), (3, 1, 3, 6),
    ]  # fmt: skip
    assert placed.spot_of((5, 13)) == (1, 6, 2, 8)
