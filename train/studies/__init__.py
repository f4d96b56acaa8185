"""Scripts that make a table or a figure of one study."""
