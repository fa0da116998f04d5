"""`foldline run` points known clients at the proxy, and the proxy at the providers that they use."""

from __future__ import annotations

import json

import pytest

from foldline.proxy.clients import ANTHROPIC, CLIENTS, GEMINI, OPENAI, client_environment, configured_upstreams
from foldline.proxy.upstreams import Upstreams

URL = "http://127.0.0.1:5"


@pytest.mark.parametrize("name", CLIENTS)
def test_each_known_client_is_given_the_address_and_has_upstreams(name: str) -> None:
    client = CLIENTS[name]
    environment = client_environment(client, {}, URL, {"HOME": "/h"})
    given = json.dumps(environment) + json.dumps([text.format(url=URL) for text in client.arguments])
    assert URL in given
    assert "{url}" not in given
    assert environment["HOME"] == "/h"
    assert Upstreams.parse(configured_upstreams(client, {})).by_vendor.keys() == client.upstreams.keys()


def test_a_client_of_several_vendors_reaches_each_at_its_own_address() -> None:
    found = Upstreams.parse(configured_upstreams(CLIENTS["aider"], {}))
    assert found.choose("anthropic", []) == found.by_vendor["anthropic"]
    assert str(found.by_vendor["anthropic"]).rstrip("/") == ANTHROPIC
    assert str(found.by_vendor["openai"]).rstrip("/") == OPENAI
    opencode = configured_upstreams(CLIENTS["opencode"], {"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"})
    assert opencode == [f"anthropic={ANTHROPIC}", "openai=http://127.0.0.1:8000/v1", f"gemini={GEMINI}"]


def test_the_configuration_of_opencode_is_json_with_three_providers() -> None:
    value = client_environment(CLIENTS["opencode"], {}, URL, {})["OPENCODE_CONFIG_CONTENT"]
    bases = {name: one["options"]["baseURL"] for name, one in json.loads(value)["provider"].items()}
    assert bases == {"anthropic": f"{URL}/v1", "openai": f"{URL}/v1", "google": f"{URL}/v1beta"}
