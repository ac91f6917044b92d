"""What is run from a terminal; needs the extra ``cli``."""
