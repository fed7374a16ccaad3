"""`python -m nngp` is the command `nngp`."""

from nngp.terminal import main

if __name__ == "__main__":
    main()
