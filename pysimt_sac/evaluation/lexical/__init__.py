"""Lexical analyses: ambiguous words, training frequencies, distance between domains."""
