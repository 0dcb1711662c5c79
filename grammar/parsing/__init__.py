"""The parser: rule text to statements as they were written, and from these to a library."""
