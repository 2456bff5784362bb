"""The paused program for agent hosts: a Model Context Protocol server over the sessions' sockets."""
