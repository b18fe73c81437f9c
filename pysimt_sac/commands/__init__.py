"""One module per sub-command of the command line: `add_arguments(parser)` and `run(args)`."""
