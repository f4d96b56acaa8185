"""Publishes checkpoints, datasets and the metric on the Hub, each with its card."""
