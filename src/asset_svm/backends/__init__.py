"""Who evaluates phi and runs the loop: this machine's cores (numpy and numba), or a card (torch)."""
