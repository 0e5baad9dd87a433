"""What is proven of a model, whichever way it was found: bounds, and the digits they need."""
