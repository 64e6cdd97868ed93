"""Programs of JAX in, and programs for XLA and the devices of JAX out (extra ``jax``)."""
