"""Which candidates, evaluated how, and which one wins."""
