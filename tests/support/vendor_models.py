"""A model of each wire format and a simulated provider, for tests with the vendors' SDKs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from foldline.testing import SimulatedProvider

MODELS = {
    "anthropic": "claude-sonnet-5",
    "openai": "gpt-5",
    "openai-responses": "gpt-5",
    "gemini": "gemini-2.5-pro",
}


@pytest.fixture
def provider() -> Iterator[SimulatedProvider]:
    """A running simulated provider."""
    with SimulatedProvider() as running:
        yield running
