"""What propagation did, why, and what it costs."""
