"""Threads: who may take how many, and teams that work side by side.

granted     how many threads a task may take: what ``n_jobs`` comes to
blas        how many of them linear algebra has: one, but outside of our own
team        threads that wait for work, and do it side by side
counter     numbers that threads of compiled code take by themselves
fresh       memory for large arrays, brought in by all threads
"""
