"""`python -m dragoman`, which torchrun needs."""

from dragoman.cli import main

if __name__ == "__main__":
    main()
