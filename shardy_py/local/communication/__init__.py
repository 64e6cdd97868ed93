"""Passes that lower the bytes that devices send each other, on programs with explicit collectives."""
