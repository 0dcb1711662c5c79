"""Entailment probing: 13 questions to a model about each statement (LINK, section 4 and appendix G).

`items.py` takes statements from a knowledge base and words their negations, `asking.py` asks the questions and parses
the replies, `metrics.py` scores them. `released.py` asks and scores as LINK's released code does.
"""
