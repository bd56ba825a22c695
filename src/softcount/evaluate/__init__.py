"""How well models do on rows they have not seen: folds by adding, scores, calibration."""
