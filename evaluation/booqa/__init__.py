"""BoOQA: boolean questions about a corpus of triples, answered by entailment from its other triples.

After "Language Models Are Poor Learners of Directional Inference" (Li, Hosseini, Weber, Steedman 2022), section 5, and
its released code.
"""
