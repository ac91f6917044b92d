"""Numbers on disk: files that are whole or absent, and what a run is made of as tensors and JSON."""
