"""The adapter of the critic `smollm2-critic` and its card."""
