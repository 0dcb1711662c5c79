"""The words put to models, and the profiles that choose them."""
