"""`python -m setpoint`: the command line, where the `setpoint` command is not on the path."""

from setpoint.cli import main

if __name__ == "__main__":
    main()
