"""Training, examination and card of the embedded model."""
