"""The calls a program makes: propagate a module, look at the result."""
