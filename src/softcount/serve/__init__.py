"""Models behind HTTP: the Open Inference Protocol, with explanations in addition to predictions.

`pip install "softcount[serve]"` installs Starlette and uvicorn, which it runs on.
"""

from softcount.errors import import_extra


def refuse_without_extra() -> None:
    """Raise an error if Starlette or uvicorn are not installed."""
    for module in ("starlette", "uvicorn"):
        import_extra(
            module, 'a server runs on Starlette and uvicorn, which are not installed: pip install "softcount[serve]"'
        )
