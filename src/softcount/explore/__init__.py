"""A page to play with a model: any column from any others, computed by the page itself; or by a server of one's own."""

from softcount.explore.page import ExplorePage, make_explorer

__all__ = ["ExplorePage", "make_explorer"]
