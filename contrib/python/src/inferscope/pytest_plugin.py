"""pytest --inferscope: each test is a scope of its name, so that a measurement of the run tells them apart; --inferscope-report PATH measures the run itself."""
import pytest

from .api import scope


def pytest_addoption(parser):
    group = parser.getgroup("inferscope")
    group.addoption("--inferscope", action="store_true", help="each test is a scope of InferScope's")
    group.addoption("--inferscope-report", metavar="PATH", help="measure the whole run and write the report there (.md, .html, .json)")


def pytest_configure(config):
    path = config.getoption("--inferscope-report")
    if path:
        from .profiler import Profiler
        config._inferscope = profiler = Profiler()
        profiler.start()


def pytest_unconfigure(config):
    profiler = getattr(config, "_inferscope", None)
    if profiler:
        profiler.stop()
        profiler.save(config.getoption("--inferscope-report"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    if not item.config.getoption("--inferscope") and not item.config.getoption("--inferscope-report"):
        yield
        return
    with scope(item.nodeid):
        yield
