"""Attacks by the thousand, each case drawn from a seed: ``make soak`` (see ``__main__``)."""
