"""Proofs about models, independent of how they were found: bounds, and the digits they need."""
