"""The words that systems produce: ambiguous ones, their training frequencies, unknown ones."""
