"""`python -m nngp_paper` is the command `nngp-paper`."""

from nngp_paper.terminal import main

if __name__ == "__main__":
    main()
