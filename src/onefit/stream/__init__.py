"""Rows that do not fit, or that lie on many machines: one pass, whoever runs it."""
