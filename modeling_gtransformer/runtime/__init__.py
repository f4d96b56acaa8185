"""What the commands and the server run on: translators by name, atomic files, errors of users."""
