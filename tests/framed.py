"""Results as Arrow tables, whatever frame they came in."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def arrow(result: Any) -> pa.Table:
    """The columns of a frame; the row labels of pandas are left out."""
    if hasattr(result, "iloc"):
        return pa.Table.from_pandas(result, preserve_index=False).replace_schema_metadata(None)
    return result.to_arrow() if hasattr(result, "to_arrow") else result
