"""Reinforcement learning for machine translation: a pysimt plugin with an engine of its own."""

__version__ = "0.1.0"
