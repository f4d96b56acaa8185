"""What goes to the Hub with a checkpoint: cards, and an app."""
