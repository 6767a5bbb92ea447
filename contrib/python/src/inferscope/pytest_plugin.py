"""
pytest --inferscope: the run is measured, each test is a scope of its name, and the summary says where the slowest ones spent their time.
--inferscope-report PATH writes the report (.md, .html, .json); --fail-on WHAT[,...] lets the run fail as `inferscope analyze --fail-on` does.
"""
from __future__ import annotations

import collections
from typing import Any, Dict, Iterator, List, Tuple

import pytest

from ._program import InferScopeError
from ._types import Event
from .api import scope

Test = Tuple[str, float, float, int]  # name, begin and end in us, thread
SHOWN = 10
BUDGET = "50%"  # a run of tests lasts for seconds, and whoever asks for this wants to see the calls: the usual 5 % may be used up before a test begins
KEY = "_inferscope"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("inferscope")
    group.addoption("--inferscope", action="store_true", help="measure the run, each test a scope, and say where the slowest ones spent their time, for at most %s%% of overhead" % BUDGET)
    group.addoption("--inferscope-report", metavar="PATH", help="the same, and write the report there (.md, .html, .json)")
    group.addoption("--fail-on", dest="inferscope_fail_on", metavar="WHAT", help="the same, and fail when InferScope's verdict is this class, or a finding has this severity or is of this rule "
                    "(cpu_bound, high, gil.contention; several with commas)")


def pytest_configure(config: Any) -> None:
    if not (config.getoption("--inferscope") or config.getoption("--inferscope-report") or config.getoption("inferscope_fail_on")):
        return
    from .profiler import Profiler
    profiler = Profiler(max_overhead=BUDGET)
    try:
        profiler.start()
    except InferScopeError as error:
        raise pytest.UsageError("inferscope: %s" % error)
    setattr(config, KEY, profiler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    if not hasattr(item.config, KEY):
        yield
        return
    with scope(item.nodeid):
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    profiler = getattr(session.config, KEY, None)
    if not profiler:
        return
    profiler.gate = None
    profiler.stop()
    path, gates = session.config.getoption("--inferscope-report"), session.config.getoption("inferscope_fail_on")
    if path:
        profiler.save(path)
    if gates:
        try:
            profiler.judge(gates)
        except InferScopeError as error:
            profiler.gate = str(error)
            if not exitstatus:
                session.exitstatus = pytest.ExitCode.TESTS_FAILED if error.code == "E_GATE" else pytest.ExitCode.USAGE_ERROR


def own_times(events: List[Event], begin_us: float, end_us: float, thread: int) -> collections.Counter[str]:
    """Self time in us by function, of the calls of THREAD that lie within: events come by start, a caller before what it calls."""
    own: collections.Counter[str] = collections.Counter()
    stack: List[Tuple[str, float]] = []
    for event in events:
        if event["event_type"] != "cpu_call" or event["thread_id"] != thread or event["start_us"] < begin_us or event["end_us"] > end_us:
            continue
        took = event["end_us"] - event["start_us"]
        while stack and stack[-1][1] < event["end_us"]:
            stack.pop()
        if stack:
            own[stack[-1][0]] -= took
        own[event["name"]] += took
        stack.append((event["name"], event["end_us"]))
    return own


def tests_of(events: List[Event]) -> List[Test]:
    """(name, begin, end, thread) of each test, the longest first."""
    open_at: Dict[Tuple[str, int], float] = {}
    tests: List[Test] = []
    for event in events:
        if event["event_type"] == "scope_enter":
            open_at[event["name"], event["thread_id"]] = event["start_us"]
        elif event["event_type"] == "scope_exit" and (event["name"], event["thread_id"]) in open_at:
            tests.append((event["name"], open_at.pop((event["name"], event["thread_id"])), event["start_us"], event["thread_id"]))
    return sorted((test for test in tests if "::" in test[0]), key=lambda test: test[1] - test[2])


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: Any) -> None:
    profiler = getattr(config, KEY, None)
    if not profiler or not profiler.report:
        return
    write = terminalreporter.write_line
    terminalreporter.section("inferscope")
    write(profiler.report["verdict"]["sentence"])
    events = profiler.get_unified_timeline()
    for name, begin, end, thread in tests_of(events)[:SHOWN]:
        top = ["%s %.1f ms" % (function, took / 1000) for function, took in own_times(events, begin, end, thread).most_common(2) if took > 0]
        write("%9.1f ms  %s  %s" % ((end - begin) / 1000, name, ", ".join(top) or "(no calls seen)"))
    if profiler.gate:
        write("inferscope: " + profiler.gate)
