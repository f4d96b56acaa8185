"""Scripts that make a table or a figure of a study."""
