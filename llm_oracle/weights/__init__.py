"""Weights of models in files: their formats, hashes and identities."""
