"""Lexical analyses: ambiguous words, training frequencies, domain distance."""
