"""Power consumption from the readings of meters."""
