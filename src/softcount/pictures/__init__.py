"""Curves as text for a terminal and as SVG, drawn by ourselves: no other program or library is needed to see them."""
