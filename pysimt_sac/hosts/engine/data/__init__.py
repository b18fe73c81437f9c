"""From text files to batches of numbers, and back."""
