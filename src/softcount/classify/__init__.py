"""The ensemble of classifiers: its members, how they are fitted, and how their scores are combined."""
