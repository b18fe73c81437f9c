"""Metrics, scores, and the significance of differences."""
