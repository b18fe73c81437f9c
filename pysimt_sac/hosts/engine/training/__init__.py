"""The training loop and what it needs: optimiser, validation, journal, run folders, resuming."""
