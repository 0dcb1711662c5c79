"""Entailment between predicates: the graph, its checks, suggested rules."""

STRONG = 0.5
"""Entailments with a lower score are not used by default."""
