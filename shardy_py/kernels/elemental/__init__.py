"""Emission of single elements: functions of the partition, regions of reductions."""
