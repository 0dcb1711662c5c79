"""The gates before what models propose, and the questions whose answers they judge."""
