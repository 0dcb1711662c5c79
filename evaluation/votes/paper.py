"""LINK's printed figures of people's votes, in percent, shown beside our own but never mixed with them."""

from __future__ import annotations

from hapax.grammar.attributes import Domain

MEASURES = ("data type", "factuality", "overall")
"""The rows of tables 3, 17 and 19, in the paper's order."""

METHODS = ("ChatGPT", "GPT4", "LINK")

TABLE_3 = {"data type": (85.40, 91.80, 94.23), "factuality": (67.50, 84.82, 88.71), "overall": (56.44, 78.23, 83.95)}
"""Accuracy by method."""

TABLE_6 = (0.04, 0.0, 6.39, 0.11, 0.0)
"""Error rates of Q1 to Q5; the paper prints shares."""

AUDIT_CORRECT = (85.67, 84.67)
"""Statements all of whose questions were answered Yes (appendix C): head, long tail."""

TABLE_17 = {
    Domain.TEMPORAL.value: (90.18, 85.27, 77.38),
    Domain.OUTCOMES.value: (94.97, 80.73, 75.98),
    Domain.NATURAL.value: (96.61, 96.61, 93.81),
    Domain.LOCATIONAL.value: (98.88, 70.79, 70.79),
}
"""Data type, factuality and overall by domain, in the paper's order."""

TABLE_19 = {"data type": (79.29, 83.16, 87.54), "factuality": (38.35, 58.48, 75.10), "overall": (65.64, 74.93, 83.39)}
"""Agreement by method. The paper does not say in which measure.

In all three columns the last figure is the mean over three questions, two on data types and one on factuality.
"""
