"""Models out of the door: as queries that score rows in a database, and as graphs that other programs run."""
