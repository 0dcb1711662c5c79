"""Entailment probing: statements put to a model as 13 questions each (LINK, section 4 and appendix G).

`templates.py` asks, `reading.py` understands, `metrics.py` counts; `items.py` takes the statements from a knowledge
base, `forms.py` gives them their negation and their question, `asking.py` puts it all to a model.
"""
