"""Sharding rules against arithmetic: does the op on shards give the shards of the op?"""
