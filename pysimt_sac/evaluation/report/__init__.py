"""The report page, the paper's tables, and the layout of all tables and figures."""
