"""The commands: `gtransformer` and its options, errors and exit statuses, and `gtransformer translate`."""
