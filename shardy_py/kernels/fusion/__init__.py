"""Analysis of a fusion before emission: its ops, heroes, reductions and transposes."""
