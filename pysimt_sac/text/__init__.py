"""How raw text becomes what a model reads, and back: Moses' steps, subword units, and the record of both."""
