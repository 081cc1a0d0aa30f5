"""How often the product's rules are right, by simulation of what may happen to a buyer."""
