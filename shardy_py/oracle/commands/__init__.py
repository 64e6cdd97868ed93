"""The command that compares with the reference."""
