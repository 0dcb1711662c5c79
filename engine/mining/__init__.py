"""Rule mining: closed rules of up to three premises from the facts of a knowledge base, as AMIE mines them.

`fact_tables.py` writes the facts as edges between integers, and has the forms of rules; `rule_measures.py` finds the
rules that may have enough support, and measures them; `mine.py` puts these together, and adds them to a rule file.
"""
