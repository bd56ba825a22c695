"""
Show the characteristic words of each class
===========================================

Text is a column like any other. Words are ranked by their log-odds in a class against the
other classes.
"""

import softcount as sc
from softcount.plot import CharacteristicWordsDisplay

messages = [
    "win a prize now, call to claim",
    "claim your free prize today",
    "free entry to win a prize",
    "dinner at eight, see you",
    "see you at dinner then",
    "are you home at eight",
]
model = sc.NaiveBayes(kinds="text").fit(messages, ["spam", "spam", "spam", "ham", "ham", "ham"])
CharacteristicWordsDisplay.from_estimator(model, n=5)
