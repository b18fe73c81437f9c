"""The embedded engine: configs, text, batches, the network, search, training, checkpoints."""
