"""What to measure: plans, what a budget keeps of them, and how long that takes."""
