"""ASGI middleware (Starlette, FastAPI, any other): each request is a scope, named after its route."""
from .api import scope


class InferScopeMiddleware:
    """`app.add_middleware(InferScopeMiddleware)`. Scopes are called "GET /items/{id}" where the framework says which route it is, else "GET /…" without the path."""

    def __init__(self, app, named=None):
        self.app, self.named = app, named

    def name_of(self, request):
        if self.named:
            return self.named(request)
        route = request.get("route")
        path = getattr(route, "path", None)
        if path is None:
            path = self._match(request)
        return "%s %s" % (request.get("method", "WS"), path or "/…")

    @staticmethod
    def _match(request):
        """Starlette matches only after the middleware: its router is asked beforehand."""
        router = getattr(request.get("app"), "router", None)
        for route in getattr(router, "routes", ()):
            match, _ = route.matches(request)
            if getattr(match, "value", 0) == 2:
                return getattr(route, "path", None)
        return None

    async def __call__(self, request, receive, send):
        if request["type"] not in ("http", "websocket"):
            await self.app(request, receive, send)
            return
        with scope(self.name_of(request)):
            await self.app(request, receive, send)
