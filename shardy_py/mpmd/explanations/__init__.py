"""Why ops are on their meshes, and why there are transfers."""
