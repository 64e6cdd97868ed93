"""Parts of the local forms of all families: communication, windows of sharded dimensions, indices, literals."""

from __future__ import annotations
