"""Files beside a knowledge base, copies and locks, and the system under them."""
