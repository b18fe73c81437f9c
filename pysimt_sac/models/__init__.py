"""Trainable models that run on either host; one file per algorithm."""
