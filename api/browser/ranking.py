"""The order of lists by popularity: frequencies that are stored in the file at its first use."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from hapax.grammar.errors import HapaxError
from hapax.kb.popularity import CELLS, Measure, add_ranks, is_ranked
from hapax.kb.store import KnowledgeBase


class PopularityRanking:
    """Stores the popularity of the rows of a file in a thread, so that a page need not wait for it."""

    def __init__(self, database: Path, measure: Measure) -> None:
        self._database, self._measure = database, measure
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def ready(self, kb: KnowledgeBase, seconds: float) -> bool:
        """False if after at most `seconds` rows are still being ranked.

        True also where they cannot be stored, as in a file that may not be written: then each list measures its rows.
        """
        if all(is_ranked(kb, table) for table in CELLS):
            return True
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._add, daemon=True)
                self._thread.start()
            thread = self._thread
        thread.join(seconds)
        return not thread.is_alive()

    def _add(self) -> None:
        with suppress(HapaxError):
            add_ranks(self._database, self._measure)
