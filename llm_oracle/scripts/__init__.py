"""Models without a network: scripted ones, and a simulated world."""
