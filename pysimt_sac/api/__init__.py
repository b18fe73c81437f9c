"""The Python API. It uses the names of the command line, and always the embedded engine."""
