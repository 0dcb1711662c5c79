"""The time that an answer may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from hapax.engine.prolog.session import LimitExceeded
from hapax.grammar.remedies import Remedy, Setting
from hapax.grammar.writing.words import counted
from hapax.kb.atoms.derived_relations import Relations
from hapax.kb.store import KnowledgeBase


@contextmanager
def time_limit(kb: KnowledgeBase, seconds: float, setting: str = "limits.seconds") -> Iterator[None]:
    """Raise LimitExceeded inside the block after so many seconds of processor time in SQL.

    `setting`: the argument by which a caller raises the limit.
    """
    end = time.process_time() + seconds

    def check() -> None:
        if time.process_time() > end:
            raise LimitExceeded(
                f"The goal needs more than {counted(seconds, 'second')} of processor time.",
                "seconds",
                Remedy("Raise the limit with {}.", Setting(setting)),
            )

    with Relations(kb).interruptible(check):
        yield
