"""Winograd schemas and their concept-reversed counterparts (CR-WSC): reading, asking, scoring, making new ones."""
