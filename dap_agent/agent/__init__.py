"""The investigation: a model with a debugger as its tools, from a stop to a proved proposal (`loop.investigate`)."""
