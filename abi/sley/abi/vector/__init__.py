"""What the vector unit does with a row: its operations, and the chains of them that VECTOR names by index."""
