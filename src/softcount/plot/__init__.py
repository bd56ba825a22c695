"""Pictures for notebooks, drawn by matplotlib: `pip install "softcount[plot]"`.

Displays have scikit-learn's habits: `XDisplay.from_estimator(model, X, ax=None)` computes and draws, `plot(ax)` draws
again, `ax_` and `figure_` are where it was drawn. `table` has the numbers as an Arrow table.
"""

from softcount.plot.anomaly_display import AnomalyDisplay
from softcount.plot.boundary_display import BoundaryDisplay
from softcount.plot.density_display import DensityDisplay
from softcount.plot.ellipse_display import EllipseDisplay
from softcount.plot.explanation_display import ExplanationDisplay
from softcount.plot.influence_display import InfluenceDisplay
from softcount.plot.marking_words_display import MarkingWordsDisplay
from softcount.plot.network_display import NetworkDisplay
from softcount.plot.nomogram_display import NomogramDisplay
from softcount.plot.profile_display import ProfileDisplay
from softcount.plot.selection_display import SelectionDisplay
from softcount.plot.trace_display import TraceDisplay

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
