"""Models behind HTTP: the Open Inference Protocol, with explanations in addition to predictions.

`pip install "softcount[serve]"` installs Starlette and uvicorn, which it runs on.
"""

from softcount.errors import DataError


def refuse_without_extra() -> None:
    """Raise an error if Starlette or uvicorn are not installed."""
    try:
        import starlette
        import uvicorn  # noqa: F401

        del starlette
    except ImportError:
        raise DataError(
            'a server runs on Starlette and uvicorn, which are not installed: pip install "softcount[serve]"'
        ) from None
