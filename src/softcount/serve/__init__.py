"""Models behind HTTP: the Open Inference Protocol, with reasons beside predictions.

`pip install "softcount[serve]"` brings what it runs on, Starlette and uvicorn.
"""
