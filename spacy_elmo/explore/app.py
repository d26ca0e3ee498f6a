"""The paths of the page. Needs the extra "explore"."""

import logging
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, AsyncIterator, Dict, List

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from pydantic import BaseModel, StrictInt, StrictStr, field_validator
from starlette.exceptions import HTTPException

from ..errors import Errors
from ..utils import show_reason
from .explorer import Explorer
from .one_at_a_time import OneAtATime, TooBusy
from .request_guard import RequestGuard, describe_error

logger = logging.getLogger(__name__)

_FOLDER = Path(__file__).parent / "static"


class TextBody(BaseModel):
    """text (str): lines."""

    text: StrictStr

    @field_validator("text")
    @classmethod
    def require_characters(cls, text: str) -> str:
        """JSON can write half a character, which no pipeline reads."""
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise ValueError("half of a surrogate pair is no character")
        return text


class TokensBody(TextBody):
    """tokens (List[int]): numbers of tokens in the text."""

    tokens: List[StrictInt]


class TokenBody(TextBody):
    """token (int): number of a token in the text. layer (int): of the biLM."""

    token: StrictInt
    layer: StrictInt = -1


def create_app(explorer: Explorer, host: str = "127.0.0.1") -> FastAPI:
    """Build the app of a pipeline.

    explorer (Explorer): answers.
    host (str): where the server will listen; if that is loopback, no other name is served.
    RETURNS (FastAPI): the app.
    """
    limits = explorer.limits
    calls = OneAtATime(limits.max_waiting, limits.seconds)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        calls.close()

    # Pages of documentation would fetch scripts from elsewhere.
    app = FastAPI(lifespan=lifespan, openapi_url=None, docs_url=None, redoc_url=None)
    # Redirects, as from /api/read/, would lead to whatever host the client has named.
    app.router.redirect_slashes = False
    _add_files(app)
    _add_answers(app, explorer, calls)
    _add_errors(app)
    app.add_middleware(RequestGuard, host=host, max_bytes=limits.max_bytes)
    return app


def _add_files(app: FastAPI) -> None:
    """The page itself. Names are those of the package, never a path of the request's."""
    names = sorted(path.name for path in _FOLDER.iterdir() if path.is_file())

    def add(route: str, name: str) -> None:
        @app.get(route)
        async def read() -> FileResponse:
            return FileResponse(_FOLDER / name)

    add("/", "index.html")
    for name in names:
        add(f"/static/{name}", name)


def _add_answers(app: FastAPI, explorer: Explorer, calls: OneAtATime) -> None:
    """What the page asks."""
    description = explorer.describe()

    @app.get("/api/pipeline")
    async def pipeline() -> Dict[str, Any]:
        return description

    @app.post("/api/read")
    async def read(body: TextBody) -> JSONResponse:
        return JSONResponse(await calls.run(explorer.read, body.text))

    @app.post("/api/compare")
    async def compare(body: TokensBody) -> JSONResponse:
        return JSONResponse(await calls.run(explorer.compare, body.text, body.tokens))

    @app.post("/api/substitute")
    async def substitute(body: TokenBody) -> JSONResponse:
        return JSONResponse(await calls.run(explorer.substitute, body.text, body.token))

    @app.post("/api/search")
    async def search(body: TokenBody) -> JSONResponse:
        return JSONResponse(await calls.run(explorer.search, body.text, body.token, body.layer))


def _add_errors(app: FastAPI) -> None:
    """Every refusal is one message, which the page shows."""

    @app.exception_handler(ValueError)
    async def refuse_input(request: Request, error: ValueError) -> JSONResponse:
        if str(error).startswith("[EL"):
            return JSONResponse(describe_error(str(error)), 400)
        return await fail(request, error)

    @app.exception_handler(TooBusy)
    async def refuse_more(request: Request, error: TooBusy) -> JSONResponse:
        return JSONResponse(describe_error(str(error)), 503)

    @app.exception_handler(RequestValidationError)
    async def refuse_body(request: Request, error: RequestValidationError) -> JSONResponse:
        problems = "; ".join(f"{p['loc'][-1]}: {p['msg']}" for p in error.errors()[:3])
        return JSONResponse(describe_error(Errors.EL283.format(problems=problems)), 422)

    @app.exception_handler(HTTPException)
    async def refuse_request(request: Request, error: HTTPException) -> JSONResponse:
        problems = f"{error.status_code}, {error.detail}"
        text = Errors.EL283.format(problems=problems)
        return JSONResponse(describe_error(text), error.status_code)

    @app.exception_handler(RuntimeError)
    @app.exception_handler(Exception)
    async def fail(request: Request, error: Exception) -> JSONResponse:
        logger.error("A request failed", exc_info=error)
        text = Errors.EL284.format(error=show_reason(error))
        return JSONResponse(describe_error(text), 500)
