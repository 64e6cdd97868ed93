"""Passes that order fragments."""
