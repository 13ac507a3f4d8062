"""What unit tests share."""

from __future__ import annotations

import asyncio
import warnings

import pytest

_KEPT: list[asyncio.AbstractEventLoop] = []


@pytest.fixture(autouse=True)
def current_event_loop() -> None:
    """Pulumi's mocks want a current event loop; a test of another tier may have taken it away.

    One is set only where there is none, and kept to the end: closing it under Pulumi's feet, or
    letting it be collected, would be a warning in some later test.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            gone = asyncio.get_event_loop_policy().get_event_loop().is_closed()
        except RuntimeError:
            gone = True
    if gone:
        _KEPT.append(asyncio.new_event_loop())
        asyncio.set_event_loop(_KEPT[-1])
