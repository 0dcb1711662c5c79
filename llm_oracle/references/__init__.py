"""Reference tables that propose and judge: mappings from tables to predicates, and the model made of them."""
