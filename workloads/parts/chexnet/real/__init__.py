"""Real X-rays in NumPy alone, alike in every framework: cropped, in batches."""
