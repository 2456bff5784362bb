"""One debug adapter with at most one client in front of it, and room for our own requests between them.

`core` decides (messages in, effects out, no I/O), `server` does the I/O, `capabilities` knows which request needs what.
Nothing is re-exported here: `core` must stay importable without asyncio.
"""
