"""Costs of a run before anything is asked."""
