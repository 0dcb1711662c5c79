"""Directional predicate entailment: tests whether a scorer knows which of two predicates entails the other.

After "Language Models Are Poor Learners of Directional Inference" (Li, Hosseini, Weber, Steedman 2022).
"""
