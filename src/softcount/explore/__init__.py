"""The interactive explorer of a model: any column given any others, computed by the page or by a local server."""

from softcount.explore.page import ExplorePage, make_explorer

__all__ = ["ExplorePage", "make_explorer"]
