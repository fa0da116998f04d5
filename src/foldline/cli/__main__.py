"""Run `foldline` as `python -m foldline.cli`."""

from foldline.cli import main

if __name__ == "__main__":
    main()
