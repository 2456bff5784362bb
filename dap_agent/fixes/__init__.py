"""From a proposal to a proven, applied fix: edits, proof in a scratch copy, apply and undo."""
