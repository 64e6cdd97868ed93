"""Launches: how many blocks and threads run a kernel, and which element each works on."""
