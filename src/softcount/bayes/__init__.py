"""Learning as Bayes meant it: several hypotheses kept side by side, each weighed by what was seen."""
