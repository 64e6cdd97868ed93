"""Passes from named computations and tensors to fragments with assigns, unassigns and transfers."""
