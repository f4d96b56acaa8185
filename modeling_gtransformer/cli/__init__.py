"""The command `gtransformer-translate`, and what all commands share: loading, safe output, errors in a sentence."""
