"""An assistant over one debug session, and its faces: debug console, custom messages of the debug adapter."""
