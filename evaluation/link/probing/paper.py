"""LINK's tables 4 and 13 as printed, in percent; shown beside our own figures, never mixed with them.

Its models answered other statements, with other prompts: the examples in its prompts are not printed.
"""

from __future__ import annotations

from dataclasses import dataclass

from hapax.evaluation.link.probing.metrics import relative_drop
from hapax.evaluation.shared.domains import DOMAINS, TOTAL

NEGATIVE_SHARE = 51.58
"""Percent of all labels (appendix G.2)."""


@dataclass(frozen=True, slots=True)
class PrintedProbe:
    """One model in one domain: (positive, negative, all) for head and long tail, and the printed delta in percent.

    Only `all` is printed for people.
    """

    who: str
    domain: str
    head: tuple[float | None, float | None, float]
    long_tail: tuple[float | None, float | None, float]
    delta: float

    @property
    def computed(self) -> float | None:
        """Delta from the printed figures; None where the head is 0, for which LINK prints 0.0 %."""
        return relative_drop(self.head[2], self.long_tail[2])


_NATURAL, _TEMPORAL, _OUTCOMES, _LOCATIONAL = DOMAINS
_HUMAN = "Human"

TABLE_4 = (
    PrintedProbe("Llama2-70B", _NATURAL, (2.78, 6.72, 0.44), (2.64, 3.49, 0.0), -100),
    PrintedProbe("ChatGPT", _NATURAL, (1.45, 5.56, 0.0), (1.08, 5.29, 0.0), -0.0),
    PrintedProbe("GPT4", _NATURAL, (13.68, 43.83, 9.23), (10.82, 39.9, 7.21), -21.89),
    PrintedProbe(_HUMAN, _NATURAL, (None, None, 82.31), (None, None, 82.45), 0.17),
    PrintedProbe("Llama2-70B", _TEMPORAL, (6.58, 2.6, 0.46), (7.43, 3.07, 0.0), -100),
    PrintedProbe("ChatGPT", _TEMPORAL, (10.72, 38.28, 4.13), (9.05, 32.15, 2.26), -45.28),
    PrintedProbe("GPT4", _TEMPORAL, (68.3, 43.95, 36.91), (60.58, 38.93, 28.11), -23.84),
    PrintedProbe(_HUMAN, _TEMPORAL, (None, None, 84.69), (None, None, 83.20), -1.76),
    PrintedProbe("Llama2-70B", _OUTCOMES, (7.62, 7.93, 1.22), (8.5, 9.97, 0.59), -51.64),
    PrintedProbe("ChatGPT", _OUTCOMES, (19.92, 29.27, 6.1), (19.65, 26.1, 2.64), -56.72),
    PrintedProbe("GPT4", _OUTCOMES, (57.32, 55.18, 41.16), (55.72, 46.63, 33.43), -18.78),
    PrintedProbe(_HUMAN, _OUTCOMES, (None, None, 83.83), (None, None, 85.13), 1.56),
    PrintedProbe("Llama2-70B", _LOCATIONAL, (8.57, 7.14, 0.0), (11.24, 8.99, 3.37), 0.0),
    PrintedProbe("ChatGPT", _LOCATIONAL, (17.14, 10.0, 5.71), (15.73, 4.49, 1.12), -80.39),
    PrintedProbe("GPT4", _LOCATIONAL, (18.57, 18.57, 2.86), (37.08, 8.99, 3.37), 17.83),
    PrintedProbe(_HUMAN, _LOCATIONAL, (None, None, 75.71), (None, None, 67.42), -10.95),
    PrintedProbe("Llama2-70B", TOTAL, (5.08, 5.28, 0.56), (5.69, 4.67, 0.27), -51.79),
    PrintedProbe("ChatGPT", TOTAL, (8.21, 20.67, 2.62), (7.76, 17.86, 1.28), -51.15),
    PrintedProbe("GPT4", TOTAL, (39.49, 44.87, 23.64), (36.58, 39.34, 18.66), -21.07),
    PrintedProbe(_HUMAN, TOTAL, (None, None, 83.12), (None, None, 82.44), -0.82),
)

TABLE_13 = {
    _NATURAL: (67.07, 63.40),
    _TEMPORAL: (83.14, 78.97),
    _OUTCOMES: (81.79, 80.19),
    _LOCATIONAL: (68.90, 67.07),
}
"""Accuracy over all questions, GPT4: head, long tail."""
