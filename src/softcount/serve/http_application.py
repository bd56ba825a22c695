"""The routes of the protocol: health, metadata, predictions, reasons, and what the server counts of itself."""

from __future__ import annotations

import asyncio
import sys
import traceback
from asyncio import FIRST_COMPLETED
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from functools import wraps
from typing import TYPE_CHECKING, Any

from softcount import __version__
from softcount.errors import SoftcountError
from softcount.records import dataclass
from softcount.run.base import workers
from softcount.serve.inference_protocol import Answered, Asked, answer_body, asked_in
from softcount.serve.refusals import Refused
from softcount.serve.request_guards import HELD, Guard, Limits, Patience, Room, refusal, whole_body
from softcount.serve.served_models import ServedModel
from softcount.serve.server_metrics import ServerMetrics
from softcount.sources import wording

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

QUICK = 64 << 10
"""Bytes up to which a request is quick: it does not wait behind long ones."""

MOST_LONG = 4
"""Long requests that are worked on at a time: each takes up to some hundreds of MB."""

Ask = Callable[[ServedModel, Asked, Patience], Answered]
Answer = tuple[int, bytes]
"""How many rows were asked for, and the body of the answer."""


@dataclass
class Served:
    """The models of a server by name, its limits and counts, and the threads that answer."""

    models: Mapping[str, ServedModel]
    limits: Limits = field(default_factory=Limits)
    metrics: ServerMetrics = field(default_factory=ServerMetrics)

    def __post_init__(self) -> None:
        self.quick = ThreadPoolExecutor(max(2, workers(None)), "softcount-quick")
        self.long = ThreadPoolExecutor(min(MOST_LONG, max(1, workers(None) - 1)), "softcount-long")
        self.room = Room(HELD * self.limits.body)

    def model(self, request: Request) -> ServedModel:
        """The model that the address names."""
        name = request.path_params["model"]
        if name not in self.models:
            raise Refused(404, f"there is no model {wording.cell(name)}. There is {wording.and_others(self.models)}.")
        request.scope["model"] = name
        return self.models[name]

    async def answer(self, request: Request, ask: Ask) -> Response:
        """What a model has to say of the rows in a request."""
        from starlette.responses import Response

        model = self.model(request)
        body = await whole_body(request, self.limits, self.room)
        lane = self.quick if len(body) <= QUICK else self.long
        patience = Patience(self.limits.working)

        def work() -> Answer:
            asked = asked_in(body)
            model.refuse_large(asked)
            return asked.rows, answer_body(request.scope["model"], asked, ask(model, asked, patience))

        rows, found = await self._awaited(request, asyncio.get_running_loop().run_in_executor(lane, work), patience)
        self.metrics.add_rows(request.scope["model"], rows)
        self.room.take(request.scope, len(found), refuse=False)  # until it is sent, others are refused
        return Response(found, media_type="application/json")

    async def _awaited(self, request: Request, answer: asyncio.Future[Answer], patience: Patience) -> Answer:
        """An answer, as long as there is time and somebody who waits for it; else its work ends as soon as it can."""
        gone = asyncio.ensure_future(request.receive())  # the body was read: what is left to come is the end
        try:
            either: set[asyncio.Future[Any]] = {answer, gone}
            done, _ = await asyncio.wait(either, timeout=self.limits.working, return_when=FIRST_COMPLETED)
            if answer in done:
                return answer.result()
        except TimeoutError:
            done = set()
        finally:
            gone.cancel()
        patience.give_up()
        answer.cancel()
        if done:
            raise Refused(499, "the connection ended before the answer.")
        raise Refused(503, f"no answer within {self.limits.working:g} seconds. Send fewer rows at a time.")

    def close(self) -> None:
        """End the threads; what waits is not begun."""
        for lane in (self.quick, self.long):
            lane.shutdown(wait=False, cancel_futures=True)


Handler = Callable[["Request"], Awaitable["Response"]]


def refusing(handler: Handler) -> Handler:
    """The handler with failures told in the protocol's form."""

    @wraps(handler)
    async def told(request: Request) -> Response:
        try:
            return await handler(request)
        except Refused as refused:
            return _response(refused)
        except SoftcountError as error:
            return _response(Refused(400, str(error)))
        except Exception as error:
            traceback.print_exception(error, file=sys.stderr)
            return _response(Refused(500, "internal error: a fault of softcount, which its log tells."))

    return told


def _response(refused: Refused) -> Response:
    found: Response = refusal(refused)
    return found


def application(served: Served, hosts: Collection[str]) -> Guard:
    """The application that uvicorn runs, or a test asks; `hosts` are the names it may be asked by."""
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.routing import Route

    async def told(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        what = {
            404: "there is nothing at this address.",
            405: "this address is asked otherwise: GET, or POST to infer.",
        }
        return _response(Refused(error.status_code, what.get(error.status_code, str(error.detail))))

    asked = {path: refusing(handler) for path, handler in _questions(served).items()}
    posted = {path: refusing(handler) for path, handler in _answers(served).items()}
    routes = [Route(path, handler, methods=["GET"]) for path, handler in asked.items()]
    routes += [Route(path, handler, methods=["POST"]) for path, handler in posted.items()]
    app = Starlette(routes=routes, exception_handlers={HTTPException: told})
    app.router.redirect_slashes = False
    return Guard(app, hosts, served.limits, served.metrics, served.room)


def _questions(served: Served) -> dict[str, Handler]:
    """What is asked by GET."""
    from starlette.responses import JSONResponse, PlainTextResponse

    async def live(request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(request: Request) -> Response:
        return JSONResponse({"ready": True})

    async def server_metadata(request: Request) -> Response:
        return JSONResponse({"name": "softcount", "version": __version__, "extensions": ["explain"]})

    async def model_metadata(request: Request) -> Response:
        return JSONResponse(served.model(request).metadata(request.path_params["model"]))

    async def model_ready(request: Request) -> Response:
        served.model(request)
        return JSONResponse({"name": request.path_params["model"], "ready": True})

    async def metrics(request: Request) -> Response:
        return PlainTextResponse(served.metrics.text(), media_type="text/plain; version=0.0.4")

    return {
        "/v2/health/live": live,
        "/v2/health/ready": ready,
        "/v2": server_metadata,
        "/v2/models/{model}": model_metadata,
        "/v2/models/{model}/ready": model_ready,
        "/metrics": metrics,
    }


def _answers(served: Served) -> dict[str, Handler]:
    """What is asked by POST."""

    async def infer(request: Request) -> Response:
        return await served.answer(request, lambda model, asked, runner: model.infer(asked, runner))

    async def explain(request: Request) -> Response:
        return await served.answer(request, lambda model, asked, runner: model.explain(asked, runner))

    return {"/v2/models/{model}/infer": infer, "/v2/models/{model}/explain": explain}
