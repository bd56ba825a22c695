"""Pictures for notebooks, drawn by matplotlib: `pip install "softcount[plot]"`.

Displays follow scikit-learn: `XDisplay.from_estimator(model, X, ax=None)` computes and draws, `plot(ax)` draws again,
`ax_` and `figure_` are where it was drawn. `table` has the numbers as an Arrow table.
"""

from softcount.plot.displays import (
    AnomalyDisplay,
    BoundaryDisplay,
    DensityDisplay,
    EllipseDisplay,
    ExplanationDisplay,
    InfluenceDisplay,
    MarkingWordsDisplay,
    NetworkDisplay,
    NomogramDisplay,
    ProfileDisplay,
    SelectionDisplay,
    TraceDisplay,
)

__all__ = [
    "AnomalyDisplay",
    "BoundaryDisplay",
    "DensityDisplay",
    "EllipseDisplay",
    "ExplanationDisplay",
    "InfluenceDisplay",
    "MarkingWordsDisplay",
    "NetworkDisplay",
    "NomogramDisplay",
    "ProfileDisplay",
    "SelectionDisplay",
    "TraceDisplay",
]
