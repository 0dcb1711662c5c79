"""A run of results: its folder, its knowledge base, its model, and the results of its parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType

from hapax.evaluation.shared.results import ResultTable
from hapax.grammar.errors import HapaxError
from hapax.kb.store import KnowledgeBase
from hapax.llm_oracle.backend import OpenedModels, OpeningOptions
from hapax.llm_oracle.journal import Journal
from hapax.llm_oracle.protocols import Models
from hapax.llm_oracle.registry import open_roles

SEED = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """The outcome of a part. `measured` and `printed` are never in one table: papers measured other models."""

    measured: Sequence[ResultTable] = ()
    printed: Sequence[ResultTable] = ()
    notes: Sequence[str] = ()
    figures: Sequence[str] = ()
    """Names of SVG files in the folder of figures, to show below the tables."""
    missing: str = ""
    """Reason why the part could not be measured."""


@dataclass(frozen=True, slots=True)
class PartResult:
    """The findings of a part, and the wall time in seconds that they took."""

    findings: Findings
    seconds: float


class ResultsRun:
    """Folder, knowledge base and model that the parts share. Use as a context manager; it closes the knowledge base.

    `share`: share of each sample that is measured, 1 for the figures of the page.
    """

    def __init__(self, folder: Path, model: str, data: Path, share: float) -> None:
        self.folder, self.model, self.data, self.share = folder, model, data, share

    def __enter__(self) -> ResultsRun:
        self.folder.mkdir(parents=True, exist_ok=True)
        settings = {"model": self.model, "share": self.share}
        path = self.folder / "settings.json"
        if path.exists() and json.loads(path.read_text("utf-8")) != settings:
            raise HapaxError(
                f"{self.folder}: it holds the results of {path.read_text('utf-8').strip()}. "
                "Name another --folder, or delete this one."
            )
        path.write_text(json.dumps(settings) + "\n", "utf-8")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A cached property is in the instance's dictionary once it was used.
        if "kb" in self.__dict__:
            self.kb.close()

    @cached_property
    def kb(self) -> KnowledgeBase:
        """The knowledge base with the search's statements and the journal of every answer."""
        return KnowledgeBase(self.folder / "results.db")

    @cached_property
    def journal(self) -> Journal:
        return Journal(self.kb)

    @cached_property
    def opening(self) -> OpeningOptions:
        return OpeningOptions(seed=SEED)

    @cached_property
    def models(self) -> Models:
        """The measured model in all roles, loaded once."""
        return open_roles(OpenedModels(self.opening), self.model, evaluator=self.model)

    def sample(self, size: int) -> int:
        """The size of a sample in a run of this share, at least two."""
        return max(2, round(size * self.share))

    def stored(self, part: str) -> PartResult | None:
        """The result of a part of an earlier run in this folder."""
        path = self._path(part)
        if not path.exists():
            return None
        record = json.loads(path.read_text("utf-8"))
        findings = record["findings"]
        for kind in ("measured", "printed"):
            findings[kind] = [ResultTable(**table) for table in findings[kind]]
        return PartResult(Findings(**findings), record["seconds"])

    def store(self, part: str, findings: Findings, seconds: float) -> PartResult:
        """Keep the result of a part, unless its data is absent: the next run looks again."""
        result = PartResult(findings, seconds)
        if not findings.missing:
            path = self._path(part)
            # Beside, and then renamed, so that a run that dies here leaves no half of a result.
            beside = path.with_suffix(".part")
            beside.write_text(json.dumps(asdict(result), ensure_ascii=False, indent=1) + "\n", "utf-8")
            beside.replace(path)
        return result

    def _path(self, part: str) -> Path:
        return self.folder / f"{part}.json"
