"""Commands of the papers and of judging."""
