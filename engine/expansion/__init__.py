"""Rule expansion: from a meta-rule, rules over narrower data types with fitting verbs (LINK, appendix B and table 5).

A model proposes and a person decides. `propose.py` asks the model, reads its replies and checks proposals together with
the library; `expand.py` adds them to a rule file as comments, which a person makes rules of.
"""
