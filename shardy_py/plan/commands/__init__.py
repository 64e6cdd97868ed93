"""The command that plans."""
