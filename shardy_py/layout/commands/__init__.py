"""The command that shows layouts."""
