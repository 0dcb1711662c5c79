"""Files beside a knowledge base, copies, locks and seals, and the system under them."""
