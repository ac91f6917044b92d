"""Who evaluates phi and runs the loop: the cores of this machine (numpy and numba), or a card (torch)."""
