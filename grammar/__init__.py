"""The rule language: parsing, checks, search plans, wording, and translation to Prolog and to LINK's JSON."""
