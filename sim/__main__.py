"""`python -m sim`: the `graphwarden` command."""

from sim.cli import main

if __name__ == "__main__":
    main()
