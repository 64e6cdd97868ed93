"""Machines: devices, links, and the placement of mesh axes on them."""
