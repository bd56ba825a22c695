"""Models out of the door: `to_sql` and `to_onnx` of estimators whose scores are sums over columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from softcount.export.scoring_plan import DrawnRows, ScoringPlan


class Exporting:
    """What is exported is first checked on 1,000 rows drawn from the model, and refused where it says otherwise."""

    def _export_plan(self) -> ScoringPlan:
        """How rows are scored."""
        from softcount.export.export_model import plan_of

        check_is_fitted(self, "fitted_")
        return plan_of(self.fitted_)  # type: ignore[attr-defined]

    def _export_rows(self) -> DrawnRows:
        """Rows to check by, and what the model says of them."""
        from softcount.export.scoring_plan import drawn_rows

        return drawn_rows(self.fitted_)  # type: ignore[attr-defined]

    def to_sql(self, dialect: str = "duckdb", table: str = "rows", keep: Sequence[str] = ()) -> str:
        """A query that scores the rows of a table: the class it predicts, and the probability of each.

        `dialect` is "duckdb", "postgres", "sqlite", "spark", "bigquery" or "snowflake"; `keep` are columns that come
        out beside. Cells that the model reads as missing, and levels it has never seen, are taken as it takes them.
        """
        from softcount.export.export_model import as_sql

        return as_sql(self, dialect, table, [keep] if isinstance(keep, str) else keep)[0]

    def to_onnx(self) -> Any:
        """An ONNX model: a tensor of rows by one for every column in, `predicted` and `probabilities` out.

        Numbers are doubles with NaN for missing, levels texts. `onnx.save(model.to_onnx(), "model.onnx")` writes it.
        """
        from softcount.export.export_model import as_onnx

        return as_onnx(self)[0]


class ExportingCentres(Exporting):
    """The same of clusters around centres; a query says which centre is nearest."""

    def _export_plan(self) -> ScoringPlan:
        from softcount.export.scoring_plan import centres_plan

        check_is_fitted(self, "found_")
        own: Any = self
        return centres_plan(own.cluster_centers_, self._export_keys(), own.found_.frame.unit)

    def _export_rows(self) -> DrawnRows:
        from softcount.export.scoring_plan import DrawnRows, rows_around

        own: Any = self
        cells = rows_around(own.cluster_centers_, self._export_keys())
        rows = np.array(list(cells.values())).T
        return DrawnRows(cells, None, own.predict(pa_table(cells) if hasattr(own, "feature_names_in_") else rows))

    def _export_keys(self) -> list[str]:
        own: Any = self
        return [str(name) for name in getattr(own, "feature_names_in_", range(own.n_features_in_))]


def pa_table(cells: Any) -> Any:
    """Cells as an Arrow table."""
    return pa.table(dict(cells))
