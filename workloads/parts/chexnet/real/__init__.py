"""Real X-rays in NumPy alone, alike in every framework: decoded, cropped, in batches."""
