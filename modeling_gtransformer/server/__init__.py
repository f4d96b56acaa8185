"""The command `gtransformer serve`: translation over HTTP with LibreTranslate's protocol."""
