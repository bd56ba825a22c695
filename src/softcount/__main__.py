"""`python -m softcount` is the `softcount` command."""

from softcount.cli import main

main(prog_name="softcount")
