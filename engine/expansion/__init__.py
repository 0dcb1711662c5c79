"""Rule expansion: from a meta-rule, rules over narrower data types with fitting verbs (LINK, appendix B and table 5).

A model proposes and a person decides. `propose.py` asks the model, reads its replies and checks proposals together with
the library; `review.py` stores proposals and decisions in a sheet, and writes the accepted rules.
"""
