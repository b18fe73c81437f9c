"""Scoring translations and telling whether a difference is real."""
