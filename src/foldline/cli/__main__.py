"""`python -m foldline.cli`, for where the `foldline` script is not on the path."""

from foldline.cli import main

if __name__ == "__main__":
    main()
