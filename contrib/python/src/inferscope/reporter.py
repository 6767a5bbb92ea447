"""Reports of events, in the formats of `inferscope analyze`."""
from __future__ import annotations

import os
from typing import Any, Optional

from ._program import call, option_words
from ._types import Path
from .analyzer import Events, _Trace


class ReportGenerator:
    """Of events as the collectors have them, or of a trace's path."""

    def __init__(self, events: Events, **options: Any) -> None:
        self.events, self.options = events, options

    def _make(self, format: str) -> str:
        with _Trace(self.events) as path:
            return call("analyze", path, "-f", format, "-o", "-", *option_words(self.options)).decode()

    def to_markdown(self) -> str:
        return self._make("md")

    def to_html(self) -> str:
        return self._make("html")

    def to_json(self) -> str:
        """Text; json.loads() makes a dict of it."""
        return self._make("json")

    def save(self, path: Path, format: Optional[str] = None) -> None:
        """Writes PATH; the format is one of `inferscope analyze` (markdown is md), or its extension's."""
        words = ["-f", {"markdown": "md"}.get(format, format)] if format else []
        with _Trace(self.events) as trace:
            call("analyze", trace, "-o", os.fspath(path), *words, *option_words(self.options))
