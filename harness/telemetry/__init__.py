"""What a device did while a trial ran: sampled beside it, read and judged after it."""
