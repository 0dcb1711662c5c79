"""Search and inference: plans walked with models and gates, Prolog programs, proofs and stories."""
