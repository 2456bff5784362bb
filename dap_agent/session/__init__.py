"""A program under the debugger as one async Python API: starting it, attaching to it, its stops and their snapshots."""
