"""What the local forms of all families are made of: communication, windows of sharded dimensions, indices, literals."""

from __future__ import annotations
