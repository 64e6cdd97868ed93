"""What is known about a fusion before anything is emitted: its ops, heroes, reductions and transposes."""
