"""Calibration of critics: what their scores are worth, learned from facts with known truth."""
