"""Training, translation and scoring of document-level models: linear scripts and the modules they share."""
