"""Which toolkit trains: the embedded engine, or pysimt. Only this package imports pysimt.

`choice` decides; `embedded` and `pysimt_host` each have an `Actor` over their networks and a shell, the model class
that their training loop trains; `session` is what both shells delegate to.
"""
