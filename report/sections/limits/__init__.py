"""What limits the speed: what the lines wait for, and how close a device comes to its limits."""
