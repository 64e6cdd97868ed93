"""Modules of PyTorch whose forward and backward passes run on shards, as FX graphs with functional collectives."""
