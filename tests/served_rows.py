"""Small models behind an application, and how a test asks them."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np

import softcount as sc
from softcount.serve.application import Limits, Served, application
from softcount.serve.models import open_by_name

RNG = np.random.default_rng(7)
ALIVE = RNG.choice(["no", "yes"], size=60).tolist()
TABLE = {
    "age": [None if at == 5 else round(RNG.normal(30 + 8 * (said == "no"), 9), 1) for at, said in enumerate(ALIVE)],
    "sex": [RNG.choice(["m", "f"], p=[0.8, 0.2] if said == "no" else [0.3, 0.7]).item() for said in ALIVE],
    "deck": [RNG.choice([1, 2, 3], p=[0.1, 0.2, 0.7] if said == "no" else [0.5, 0.3, 0.2]).item() for said in ALIVE],
}
TEXTS = ["win money now", "see you at noon", "money for nothing", "noon it is then"]
POINTS = RNG.normal(size=(40, 2)) + np.repeat([[0.0, 0.0], [6.0, 6.0]], 20, axis=0)


def saved_models(folder) -> dict[str, str]:
    """Every kind of model that is served, in files: the paths by name."""
    models = {
        "titanic": sc.NaiveBayes().fit(TABLE, ALIVE),
        "chosen": sc.Classifier().fit(TABLE, ALIVE),
        "found": sc.Mixture(2, random_state=0).fit(TABLE),
        "points": sc.GaussianMixture(2, random_state=0).fit(POINTS),
        "centres": sc.KMeans(2, random_state=0).fit(POINTS),
        "named": sc.KMeans(2, random_state=0).fit({"x": POINTS[:, 0], "y": POINTS[:, 1]}),
        "spam": sc.NaiveBayes(kinds="text").fit(TEXTS, ["spam", "ham", "spam", "ham"]),
        "tree": sc.BayesNet.tan(TABLE, ALIVE),
    }
    for name, model in models.items():
        model.save(folder / f"{name}.sc")
    return {name: str(folder / f"{name}.sc") for name in models}


def app_of(paths, limits: Limits | None = None):
    return application(Served(open_by_name(paths), limits or Limits()), ["localhost"])


def tensor(name: str, data: list, datatype: str = "FP64", shape=None) -> dict:
    return {"name": name, "datatype": datatype, "shape": [len(data)] if shape is None else shape, "data": data}


def body(*tensors: dict, **more) -> bytes:
    return json.dumps({"inputs": list(tensors), **more}).encode()


def asked(app, *requests, headers=None) -> list[httpx.Response]:
    """The responses to (method, path, content), all asked at once."""

    async def every() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            return await asyncio.gather(*(client.request(how, path, content=what) for how, path, what in requests))

    with ThreadPoolExecutor(1) as thread:  # the tests' own thread may have a loop that drives a browser
        return thread.submit(lambda: asyncio.run(every())).result()


def infer(app, model: str, content: bytes, route: str = "infer") -> httpx.Response:
    return asked(app, ("POST", f"/v2/models/{model}/{route}", content))[0]


def outputs(response: httpx.Response) -> dict[str, np.ndarray]:
    """The tensors of an answer, by name."""
    assert response.status_code == 200, response.text
    return {x["name"]: np.array(x["data"]).reshape(x["shape"]) for x in response.json()["outputs"]}
