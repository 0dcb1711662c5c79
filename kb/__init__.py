"""The knowledge base: one SQLite file of facts, questions, scores, decisions and statements."""
