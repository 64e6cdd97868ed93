"""The protocols that ops, passes, frontends and cost models implement."""
