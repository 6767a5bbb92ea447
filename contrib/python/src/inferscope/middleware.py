"""ASGI middleware (Starlette, FastAPI, any other): each request is a scope, named after its route, until its response is sent."""
from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple

from .api import is_attached, scope

LAST = ("http.response.body", "http.response.zerocopysend", "http.response.pathsend")
KNOWN_MAX = 256
KNOWN_PATH_MAX = 200


def _until_sent(request: Any, send: Any) -> Any:
    """SEND, which ends the scope REQUEST with the response: what follows it (Starlette's background tasks) is nobody's latency."""
    async def sending(message: Any) -> None:
        await send(message)
        if message.get("type") in LAST and not message.get("more_body"):
            request.__exit__(None, None, None)
    return sending


class InferScopeMiddleware:
    """
    `app.add_middleware(InferScopeMiddleware)`. Scopes are called "GET /items/{id}" where the framework says which route it is, else "GET /…" without the path. named: who
    names them instead, of the request ("scope" of ASGI).
    """

    def __init__(self, app: Any, named: Optional[Callable[[Any], str]] = None) -> None:
        self.app, self.named = app, named
        self._known: Dict[Tuple[Any, ...], str] = {}

    def name_of(self, request: Any) -> str:
        if self.named:
            return self.named(request)
        path = getattr(request.get("route"), "path", None)
        if path is None:
            path = self._matched(request)
        return "%s %s" % (request.get("method", "WS"), path or "/…")

    def _matched(self, request: Any) -> str:
        """
        Starlette matches only after the middleware: its router is asked beforehand, which costs as much again as the framework's own search. So while nobody measures that is
        done for the first KNOWN_MAX paths alone: services have few that requests stay in for long, and these are named also in a measurement that finds them under way.
        """
        routes = getattr(getattr(request.get("app"), "router", None), "routes", ())
        key = (len(routes), request["type"], request.get("method"), request.get("root_path"), request.get("path"))
        path = self._known.get(key)
        fits = len(self._known) < KNOWN_MAX and len(key[-1] or "") <= KNOWN_PATH_MAX
        if path is None and (fits or is_attached()):
            path = self._match(routes, request)
            if fits:
                self._known[key] = path
        return path or ""

    @staticmethod
    def _match(routes: Any, request: Any) -> str:
        for route in routes:
            match, _ = route.matches(request)
            if getattr(match, "value", 0) == 2:
                return getattr(route, "path", None) or ""
        return ""

    async def __call__(self, request: Any, receive: Any, send: Any) -> None:
        if request["type"] not in ("http", "websocket"):
            await self.app(request, receive, send)
            return
        one = scope(self.name_of(request))
        with one:
            await self.app(request, receive, _until_sent(one, send) if request["type"] == "http" else send)
