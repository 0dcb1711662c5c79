"""Rankers without a language model: word frequencies, encoders, references."""
