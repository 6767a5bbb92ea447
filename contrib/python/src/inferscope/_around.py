"""A function inside a with block of its own per call, whatever kind of function it is: its callers notice nothing of it."""
from __future__ import annotations

import functools
import inspect
import sys
from typing import Any, Callable, ContextManager


def _first_step(generator: Any) -> Any:
    """Of an async generator inside another one. The event loop knows the outer one, and would close both at its end, each while the other is being closed."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        return generator.asend(None)
    finally:
        sys.set_asyncgen_hooks(*hooks)


def _async_items(function: Callable[..., Any], block: Callable[[], ContextManager[Any]]) -> Callable[..., Any]:
    """What `yield from` does where there is one: what is sent, thrown and closed gets to FUNCTION's generator."""
    @functools.wraps(function)
    async def items(*args: Any, **kwargs: Any) -> Any:
        with block():
            generator = function(*args, **kwargs)
            step = _first_step(generator)
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                finally:
                    step = None  # an exception in it would keep this frame, and itself
                try:
                    sent = yield item
                except BaseException as error:
                    step = generator.athrow(error)
                else:
                    step = generator.asend(sent)
    return items


def around(function: Callable[..., Any], block: Callable[[], ContextManager[Any]]) -> Callable[..., Any]:
    """FUNCTION inside `with block():`; coroutines and generators from their first step to their end."""
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            with block():
                return await function(*args, **kwargs)
        return coroutine
    if inspect.isasyncgenfunction(function):
        return _async_items(function, block)
    if inspect.isgeneratorfunction(function):
        @functools.wraps(function)
        def steps(*args: Any, **kwargs: Any) -> Any:
            with block():
                return (yield from function(*args, **kwargs))
        return steps

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        with block():
            return function(*args, **kwargs)
    return plain
