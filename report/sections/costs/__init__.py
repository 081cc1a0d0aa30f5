"""What it costs: the section of money, its words, tables and charts."""
