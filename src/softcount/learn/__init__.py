"""Learning: one pass where nothing is hidden, expectation and maximisation where something is."""
