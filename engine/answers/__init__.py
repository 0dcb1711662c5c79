"""Answers to goals, statements in bulk, and the library for other databases."""
