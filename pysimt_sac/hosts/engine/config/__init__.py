"""Configurations: declared options, the `.conf` parser, and the registries that names are looked up in."""
