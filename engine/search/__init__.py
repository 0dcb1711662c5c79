"""Search for the values of a rule: plan, beams, the oracle that asks models, gates."""
