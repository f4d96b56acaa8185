"""The command `gtransformer-serve`: translation over HTTP, in the protocol of LibreTranslate's clients."""
