"""Rankers without a language model: word frequencies, word vectors, encoders, references."""
