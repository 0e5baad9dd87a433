"""Hostile problems, their solutions in ball arithmetic, and an audit of the package's claims."""
