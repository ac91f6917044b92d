"""Products and elementwise functions where numpy and scipy make extra passes or too few threads."""
