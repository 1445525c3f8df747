"""The command line. Loaded by its entry point only."""
