"""Prolog and SQL inference: the session that owns Prolog, programs, proofs, bulk derivation."""
