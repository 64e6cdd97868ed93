"""Entry functions: one per emitter, which covers all elements of the results."""
