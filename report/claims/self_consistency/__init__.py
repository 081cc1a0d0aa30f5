"""What published sources say, held against their own figures."""
