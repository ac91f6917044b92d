"""Threads: how many the linear algebra takes, and teams that work side by side."""
