"""Pronouns resolved in three steps: parse to events with roles, abstract entities to types, prove both readings.

`parsing.py` has the parser's seam, `events.py` turns dependencies into events, `kinds.py` abstracts entities by WordNet
(`wordnet.py`) and checks agreement, `lexicon.py` gives words their classes (`lexicon.toml`), `roles.py` finds roles in
phrases, `stating.py` states atoms, and `reasoning.py` proves each candidate by the theory in `commonsense.rules` and
compares the weights (`weighing.py`, `weights.toml`). `learning.py` fits the weights, `acquiring.py` acquires rules
(`acquired.rules`), and `lessons.py` measures both on families that a fit did not see.
"""
