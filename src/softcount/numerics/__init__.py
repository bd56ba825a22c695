"""Arithmetic without statistics: sums that keep their digits, and sums of exponentials."""
