"""What a card should do: an expected value of a published work, with its measured error."""
