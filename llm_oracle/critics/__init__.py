"""Critics in a row or combined, and what they are worth."""
