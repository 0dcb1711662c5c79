"""Rules and values as text: rule text, Prolog, sentences, LINK's JSON, and the page of the language."""
