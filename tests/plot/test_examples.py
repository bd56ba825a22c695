"""The scripts of the gallery run and draw."""

from __future__ import annotations

import runpy
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")

SCRIPTS = sorted((Path(__file__).parents[2] / "examples").glob("plot_*.py"))


@pytest.mark.skipif(not SCRIPTS, reason="the examples are not here")
def test_there_are_sixteen():
    assert len(SCRIPTS) >= 16


@pytest.mark.filterwarnings("ignore::softcount.DataWarning")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_draws_a_picture(script):
    import matplotlib.pyplot as plt

    plt.close("all")
    runpy.run_path(str(script))
    drawn = [plt.figure(number) for number in plt.get_fignums()]
    assert drawn and all(ax.has_data() or ax.texts for figure in drawn for ax in figure.axes)
    plt.close("all")
