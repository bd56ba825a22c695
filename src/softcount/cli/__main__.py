"""`python -m softcount.cli`, the same as `softcount`."""

from softcount.cli import main

if __name__ == "__main__":
    main(prog_name="softcount")
