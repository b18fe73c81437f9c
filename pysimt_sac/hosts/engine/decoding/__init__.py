"""Decoding with a trained network: greedy search, beam search and sampling."""
