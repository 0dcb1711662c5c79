"""Entailment between predicates: the graph, its checks, suggested rules."""
