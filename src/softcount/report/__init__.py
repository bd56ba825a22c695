"""What a person reads: tables, figures and pages, on a terminal, in a pipe or as JSON."""
