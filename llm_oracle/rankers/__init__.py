"""Rankers without a language model: counts, word frequencies, word vectors, encoders, references."""
