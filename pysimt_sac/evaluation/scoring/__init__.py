"""Metrics, scores and significance tests."""
