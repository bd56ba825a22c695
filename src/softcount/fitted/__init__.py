"""What a fitted model says: answers, explanations, surprise, classes, words."""
