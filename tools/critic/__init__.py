"""Trains, measures and exports the LoRA adapter of the critic `smollm2-critic`."""
