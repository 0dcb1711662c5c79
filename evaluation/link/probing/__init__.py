"""Entailment probing: 13 questions to a model about each statement (LINK, section 4 and appendix G).

`items.py` takes statements from a knowledge base, `forms.py` words their negations and questions, `templates.py` has
the questions, `asking.py` asks a model, `reading.py` parses its replies, `metrics.py` scores them.
`released.py` asks and scores as LINK's released code does.
"""
