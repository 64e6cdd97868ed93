"""The vocabulary: meshes, axes, shardings and sharding rules, as frozen values."""
