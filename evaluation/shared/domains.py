"""Domains and distributions, as LINK's tables name and order them."""

from __future__ import annotations

from collections.abc import Iterable

from hapax.grammar.attributes import Domain
from hapax.kb.records import Distribution

DOMAINS = (Domain.NATURAL.value, Domain.TEMPORAL.value, Domain.OUTCOMES.value, Domain.LOCATIONAL.value)
"""In the order of LINK's table 4."""

TOTAL = "total"
"""Name of the row over all domains."""

NO_DOMAIN = "no domain"
"""Name of the row for rules that declare no domain."""

DISTRIBUTION_NAMES = {Distribution.HEAD: "head", Distribution.LONG_TAIL: "long tail"}


def ordered_domains(domains: Iterable[str]) -> list[str]:
    """LINK's four domains in the order of its table 4, then others by name; each once."""
    present = set(domains)
    return [domain for domain in DOMAINS if domain in present] + sorted(present.difference(DOMAINS))
