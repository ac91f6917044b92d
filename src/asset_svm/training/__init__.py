"""One training run: what it is made of, how it is set up, and how it ends."""
