"""What everything stands on: the actor protocol, batches, options, registries, errors, files."""
