"""Translating with a trained network: greedy, beam and sampling searches."""
