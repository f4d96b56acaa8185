"""Commands that train, translate with and score document-level models."""
