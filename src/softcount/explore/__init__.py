"""A page to play with a model: any column from any others, computed by the page itself; or by a server of one's own."""

from softcount.explore.explore_page import ExplorePage, explored

__all__ = ["ExplorePage", "explored"]
