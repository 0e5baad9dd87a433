"""Slow twins of the package, written from the definitions alone."""
