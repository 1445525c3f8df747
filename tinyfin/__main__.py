"""`python -m tinyfin`: the command line without its script."""

from tinyfin.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
