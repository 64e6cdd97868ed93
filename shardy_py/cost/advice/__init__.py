"""Advice: sharding constraints and shardings of inputs that make a program cheaper, each verified by solving again."""
