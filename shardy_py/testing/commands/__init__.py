"""The command that checks plugins."""
