"""What a precision is, how weights are updated in it, and what a step computes and holds."""
