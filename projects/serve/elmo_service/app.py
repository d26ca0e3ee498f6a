"""The paths of the server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from spacy.language import Language
from starlette.exceptions import HTTPException

from .answers import Reader, make_vectors_reader, read_entities, read_similarities, read_tags
from .batcher import Batcher
from .bodies import PairsBody, TextsBody, VectorsBody, check_texts
from .guard import Guard
from .limits import Limits
from .metrics import Metrics
from .offers import describe_pipeline, find_offers
from .refusals import NO_JSON, NO_REQUEST, NOT_OFFERED, STOPPING, Refusal, describe_refusal
from .worker import Worker


def create_app(nlp: Language, limits: Limits | None = None, *, zones: bool = True) -> FastAPI:
    """Build the app of a loaded pipeline, and warm the pipeline up.

    zones (bool): give back what the vocab collects, after each batch.
    RETURNS (FastAPI): with `app.state.batcher`, which its lifespan starts and stops.
    """
    limits = limits or Limits()
    metrics = Metrics()
    worker = Worker(nlp, metrics, max_tokens=limits.max_tokens, zones=zones)
    batcher = Batcher(worker, limits, metrics)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with batcher:
            yield

    # The pages of documentation would fetch scripts from elsewhere; /openapi.json stays.
    app = FastAPI(
        title="spacy-elmo",
        version=version("spacy-elmo"),
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    # Redirects, as from /tags/, would lead to the host that the client has named.
    app.router.redirect_slashes = False
    app.state.batcher = batcher
    app.state.metrics = metrics
    add_refusals(app, metrics)
    add_reading(app, describe_pipeline(nlp, *find_offers(nlp)), batcher)
    add_watching(app, batcher, metrics)
    paths = [route.path for route in app.routes if hasattr(route, "path")]
    app.add_middleware(Guard, limits=limits, metrics=metrics, paths=paths)
    return app


def add_reading(app: FastAPI, pipeline: dict[str, Any], batcher: Batcher) -> None:
    """The paths that read texts."""
    limits = batcher.limits

    async def answer(what: str, texts: list[str], reader: Reader, request: Request) -> Response:
        if what not in pipeline["offers"]:
            components = ", ".join(pipeline["components"])
            raise Refusal(NOT_OFFERED, what=what, components=components)
        check_texts(texts, limits)
        body = await batcher.submit(texts, reader, request.scope["share"])
        return Response(body, media_type="application/json")

    @app.post("/tags")
    async def tags(body: TextsBody, request: Request) -> Response:
        """Tokens with tags, parts of speech, morphology and lemmas."""
        return await answer("tags", body.texts, Reader(read_tags), request)

    @app.post("/entities")
    async def entities(body: TextsBody, request: Request) -> Response:
        """Named entities."""
        return await answer("entities", body.texts, Reader(read_entities), request)

    @app.post("/vectors")
    async def vectors(body: VectorsBody, request: Request) -> Response:
        """Vectors of tokens or of texts."""
        reader = make_vectors_reader(body.pooling, body.encoding, pipeline["width"])
        return await answer("vectors", body.texts, reader, request)

    @app.post("/similarity")
    async def similarity(body: PairsBody, request: Request) -> Response:
        """Cosines of pairs of texts."""
        texts = [text for pair in body.pairs for text in pair]
        return await answer("similarity", texts, Reader(read_similarities), request)

    @app.get("/")
    async def about() -> dict[str, Any]:
        """The pipeline, what it offers, and the limits."""
        return {"pipeline": pipeline, "limits": asdict(limits)}


def add_watching(app: FastAPI, batcher: Batcher, metrics: Metrics) -> None:
    """The paths for whoever runs the server."""

    @app.get("/live")
    async def live() -> JSONResponse:
        """Whether to leave it running: no pass takes for ever."""
        status = 503 if batcher.is_stuck else 200
        return JSONResponse({"live": not batcher.is_stuck}, status)

    @app.get("/ready")
    async def ready() -> JSONResponse:
        """Whether to send requests: it does not stop, and more may wait."""
        is_ready = not (batcher.is_stopping or batcher.is_full or batcher.is_stuck)
        return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)

    @app.get("/metrics")
    async def prometheus() -> Response:
        """In Prometheus' text format."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)


def add_refusals(app: FastAPI, metrics: Metrics) -> None:
    """Every refusal has the same shape."""

    @app.exception_handler(Refusal)
    async def refuse(request: Request, refusal: Refusal) -> JSONResponse:
        metrics.refusals.labels(refusal.code).inc()
        headers = refusal.headers
        if refusal.code == STOPPING.code:
            headers["connection"] = "close"
        return JSONResponse(refusal.content, refusal.status, headers)

    @app.exception_handler(RequestValidationError)
    async def refuse_body(request: Request, error: RequestValidationError) -> JSONResponse:
        return await refuse(request, explain_body(error))

    @app.exception_handler(HTTPException)
    async def refuse_request(request: Request, error: HTTPException) -> JSONResponse:
        if error.status_code == 400:
            return await refuse(request, Refusal(NO_JSON))
        code = f"HTTP{error.status_code}"
        metrics.refusals.labels(code).inc()
        content = describe_refusal(code, str(error.detail))
        return JSONResponse(content, error.status_code, error.headers)


def explain_body(error: RequestValidationError) -> Refusal:
    """RETURNS (Refusal): what is wrong where, without what was sent."""
    problems = error.errors()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return Refusal(NO_JSON)
    texts = (f"{'.'.join(map(str, p['loc']))}: {p['msg']}" for p in problems[:3])
    return Refusal(NO_REQUEST, problems="; ".join(texts))
