"""The paper in plain numpy, sharing no code with the library."""
