"""The probability of answers and statements, from those of the facts below them and from all proofs."""
