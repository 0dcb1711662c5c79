"""Diagnostics for other programs: SARIF 2.1.0, and the annotations of GitHub's workflows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hapax.grammar.errors import Diagnostic, Place, Severity
from hapax.grammar.explanations import explained_codes

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ANNOTATIONS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def sarif_text(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF log with one run and one result for each diagnostic."""
    results = list(map(_result, diagnostics))
    used = {result["ruleId"] for result in results}
    rules = [{"id": entry.code, "shortDescription": {"text": entry.name}} for entry in explained_codes().values()]
    driver = {"name": "hapax", "rules": [rule for rule in rules if rule["id"] in used]}
    # Columns count code points, as the parser does; SARIF would take them for units of UTF-16.
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False)


def _result(diagnostic: Diagnostic) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "level": diagnostic.severity.value,  # SARIF has the same three words
        "message": {"text": diagnostic.text},
        "locations": [_location(diagnostic.place)],
    }
    if diagnostic.related:
        result["relatedLocations"] = list(map(_location, diagnostic.related))
    return result


def _location(place: Place) -> dict[str, Any]:
    path = Path(place.file)
    region = {"startLine": place.line, "startColumn": place.column}
    if place.end_line is not None and place.end_column is not None:
        # As in a place, the end is behind the last character.
        region |= {"endLine": place.end_line, "endColumn": place.end_column}
    # GitHub takes a relative address as one in the repository.
    address = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    return {"physicalLocation": {"artifactLocation": {"uri": address}, "region": region}}


def github_annotation(diagnostic: Diagnostic) -> str:
    """The workflow command that shows the diagnostic beside its line."""
    place = diagnostic.place
    fields: dict[str, object] = {"file": place.file, "line": place.line}
    if place.end_line is not None and place.end_column is not None:
        # GitHub counts the last column in.
        fields |= {"endLine": place.end_line, "col": place.column, "endColumn": place.end_column - 1}
    else:
        fields["col"] = place.column
    fields["title"] = diagnostic.code
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in fields.items())
    return f"::{_ANNOTATIONS[diagnostic.severity]} {properties}::{_data(diagnostic.text)}"


def _data(text: str) -> str:
    # The escapes of workflow commands; `%` first, which the other escapes contain.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
