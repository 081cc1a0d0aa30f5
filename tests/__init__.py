"""Tests stand in the folder of what they test; what they share is in helpers."""
