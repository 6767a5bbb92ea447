"""Reports of events, in the formats of `inferscope analyze`."""
import os

from ._program import call, option_words
from .analyzer import _Trace


class ReportGenerator:
    """Of events as the collectors have them, or of a trace's path."""

    def __init__(self, events, **options):
        self.events, self.options = events, options

    def _make(self, format):
        with _Trace(self.events) as path:
            return call("analyze", path, "-f", format, "-o", "-", *option_words(self.options)).decode()

    def to_markdown(self):
        return self._make("md")

    def to_html(self):
        return self._make("html")

    def to_json(self):
        """Text; json.loads() makes a dict of it."""
        return self._make("json")

    def save(self, path, format=None):
        """Writes PATH; the format is one of `inferscope analyze` (markdown is md), or its extension's."""
        words = ["-f", {"markdown": "md"}.get(format, format)] if format else []
        with _Trace(self.events) as trace:
            call("analyze", trace, "-o", os.fspath(path), *words, *option_words(self.options))
