"""What a card costs for the buyer's own work."""
