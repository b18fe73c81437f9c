"""The report page, the paper's tables, and the rendering of tables and figures."""
