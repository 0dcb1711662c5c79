"""Rule creation by expansion: one meta-rule, many data types, the verb that fits each (LINK, appendix B and table 5).

A model proposes and a person decides. `propose.py` asks, `replies.py` understands, `verdicts.py` checks against the
library; `sheet.py` keeps proposals with what people decided, and `rule_file.py` writes the rules that were accepted.
"""
