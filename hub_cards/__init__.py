"""The Space of the Hub."""
