"""What `pysimt_sac` offers to Python programs, in the words of the command line; always with the embedded engine."""
