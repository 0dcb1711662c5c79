"""Questions to models and the gates before their answers."""
