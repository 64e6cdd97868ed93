"""Running programs through XLA, on the devices of JAX (extra ``jax``)."""
