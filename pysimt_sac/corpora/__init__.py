"""Preparing corpora: from what people download, or what we generate, to what training reads."""
