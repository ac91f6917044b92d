"""Fits over all options of the library, whose bits no refactoring may change."""
