"""The evaluator of rules: premises as SQL over tagged constants, in layers, with proofs by the rows that they join."""
