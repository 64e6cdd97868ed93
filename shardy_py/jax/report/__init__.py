"""Runs and local programs as text."""
