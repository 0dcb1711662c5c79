"""Models on OpenAI-compatible servers."""
