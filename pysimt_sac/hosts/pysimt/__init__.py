"""pysimt as a host: its models as actors, trained by its own loop."""
