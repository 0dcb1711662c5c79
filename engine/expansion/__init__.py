"""Rule expansion: from a meta-rule, rules over narrower data types with fitting verbs (LINK, appendix B and table 5).

A model proposes and a person decides. `propose.py` asks the model, `replies.py` parses its replies, `verdicts.py`
checks proposals together with the library; `sheet.py` stores proposals and decisions, and `rule_file.py` writes the
accepted rules.
"""
