"""Directional predicate entailment: does one predicate entail another, and does the scorer know which way?

After "Language Models Are Poor Learners of Directional Inference" (Li, Hosseini, Weber, Steedman 2022).
"""
