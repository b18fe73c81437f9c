"""The toolkits that can train: the embedded engine or pysimt. Only this package imports pysimt.

`choice` selects one. Each has an `Actor` over its networks (`embedded`, `pysimt_actor`) and a shell, the model class
that its training loop trains (`embedded`, `pysimt_host`); both shells delegate to `session`.
"""
