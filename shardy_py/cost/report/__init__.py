"""Costs, comparisons and advice as text."""
