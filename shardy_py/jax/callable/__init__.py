"""Local programs as functions of JAX: sharded arrays in and out, also under ``jit`` and in loops."""
