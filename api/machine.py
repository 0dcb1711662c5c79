"""Examination of this machine: backends of models, and the programs and packages that Hapax needs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hapax.api.tabular import Tabular
from hapax.grammar.arguments import checked

if TYPE_CHECKING:
    from hapax.engine.doctor import Finding
    from hapax.llm_oracle.registry import ModelListing


@dataclass(frozen=True)
class ModelListings(Tabular):
    """The backends of models that are known, with their roles, abilities, and whether they can be used here."""

    listings: tuple[ModelListing, ...]
    columns = ("model", "roles", "abilities", "usable here")

    def cells(self) -> list[tuple[Any, ...]]:
        """Model string, roles, abilities, and `yes` or the remedy."""
        rows = []
        for model in self.listings:
            usable = "yes" if model.available else model.remedy
            rows.append((model.name, ", ".join(model.roles), model.abilities, usable))
        return rows

    def to_json(self) -> list[dict[str, Any]]:
        """The backends as JSON objects."""
        return [asdict(model) for model in self.listings]


@dataclass(frozen=True)
class Examination(Tabular):
    """Programs and packages that Hapax needs, what was found of each, and how to install what is missing."""

    findings: tuple[Finding, ...]
    columns = ("part", "found", "what to do")

    @property
    def passed(self) -> bool:
        """True if only optional parts are missing, or none."""
        return all(finding.ok or finding.optional for finding in self.findings)

    def cells(self) -> list[tuple[Any, ...]]:
        """Name, version, and the remedy for what is missing."""
        rows = []
        for finding in self.findings:
            version = finding.found or ("not installed" if finding.optional else "missing")
            rows.append((finding.name, version, "" if finding.ok else finding.remedy))
        return rows

    def to_json(self) -> list[dict[str, Any]]:
        """The findings as JSON objects."""
        return [asdict(finding) for finding in self.findings]


@checked
def list_models() -> ModelListings:
    """The backends of models, built in and of other packages, with their abilities."""
    from hapax.llm_oracle.registry import list_models as registered_models

    return ModelListings(registered_models())


def guard_network() -> None:
    """From now on this process connects to this machine and to hosts that models, aliases and proxies name."""
    from hapax.llm_oracle.egress import guard

    guard()


@checked
def doctor() -> Examination:
    """Check the programs and packages that Hapax needs."""
    from hapax.engine.doctor import examine

    return Examination(tuple(examine()))
