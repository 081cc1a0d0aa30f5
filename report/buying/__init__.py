"""What is bought: what a card costs for the buyer's work, and what a delivered machine must reach."""
