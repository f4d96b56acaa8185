"""Cards, publishing and an app for the Hub."""
