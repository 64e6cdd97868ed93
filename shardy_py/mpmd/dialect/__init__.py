"""The mpmd dialect as Python values: types, topologies, origins, and views of fragments."""
