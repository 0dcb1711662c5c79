"""Entailment between predicates: the graph and its checks."""
