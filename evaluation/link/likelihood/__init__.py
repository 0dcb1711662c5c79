"""Likelihood of head and long-tail statements: distributions and their figures."""
