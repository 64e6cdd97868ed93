"""Passes that settle the shardings of tensors on meshes, and move them into their types."""
