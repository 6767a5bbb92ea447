"""ASGI middleware (Starlette, FastAPI, any other): each request is a scope, named after its route."""
from __future__ import annotations

from typing import Any, Callable, Optional

from .api import scope


class InferScopeMiddleware:
    """`app.add_middleware(InferScopeMiddleware)`. Scopes are called "GET /items/{id}" where the framework says which route it is, else "GET /…" without the path."""

    def __init__(self, app: Any, named: Optional[Callable[[Any], str]] = None) -> None:
        self.app, self.named = app, named

    def name_of(self, request: Any) -> str:
        if self.named:
            return self.named(request)
        route = request.get("route")
        path = getattr(route, "path", None)
        if path is None:
            path = self._match(request)
        return "%s %s" % (request.get("method", "WS"), path or "/…")

    @staticmethod
    def _match(request: Any) -> Optional[str]:
        """Starlette matches only after the middleware: its router is asked beforehand."""
        router = getattr(request.get("app"), "router", None)
        for route in getattr(router, "routes", ()):
            match, _ = route.matches(request)
            if getattr(match, "value", 0) == 2:
                return getattr(route, "path", None)
        return None

    async def __call__(self, request: Any, receive: Any, send: Any) -> None:
        if request["type"] not in ("http", "websocket"):
            await self.app(request, receive, send)
            return
        with scope(self.name_of(request)):
            await self.app(request, receive, send)
