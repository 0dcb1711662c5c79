"""A knowledge base in a web browser, for `hapax serve`: what its pages show, and the application that serves them."""
