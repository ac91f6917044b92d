"""Who evaluates phi and runs the loop: local (numpy + numba)."""
