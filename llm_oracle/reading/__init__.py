"""Readers of replies: from what a model wrote to values."""
