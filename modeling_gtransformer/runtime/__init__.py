"""Shared code of the commands and the server: translators, atomic files, user errors."""
