"""Commands that train document-level models, and translate and score with them."""
