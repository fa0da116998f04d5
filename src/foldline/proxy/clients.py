"""How to make known clients use a proxy, without a change to their configuration files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

ANTHROPIC, OPENAI, GEMINI = (
    "https://api.anthropic.com",
    "https://api.openai.com",
    "https://generativelanguage.googleapis.com",
)


class KnownClient(NamedTuple):
    """A client: the environment variables and arguments that give it the address of the proxy.

    `{url}` stands for the address.
    """

    upstreams: Mapping[str, str]
    """The default addresses of the providers, by vendor. Environment variables of the user can replace these
    addresses.
    """
    variables: Mapping[str, str]
    arguments: tuple[str, ...] = ()


_ALL = {"anthropic": ANTHROPIC, "openai": OPENAI, "gemini": GEMINI}
_OPENCODE = {
    name: {"options": {"baseURL": f"{{url}}/{version}"}}
    for name, version in (("anthropic", "v1"), ("openai", "v1"), ("google", "v1beta"))
}
CLIENTS = {
    "claude": KnownClient({"anthropic": ANTHROPIC}, {"ANTHROPIC_BASE_URL": "{url}"}),
    "codex": KnownClient(
        {"openai": OPENAI},
        {},
        (
            *("-c", "model_provider=foldline"),
            "-c",
            'model_providers.foldline={{name="foldline",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}',
        ),
    ),
    "opencode": KnownClient(_ALL, {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": _OPENCODE})}),
    "gemini": KnownClient({"gemini": GEMINI}, {"GOOGLE_GEMINI_BASE_URL": "{url}"}),
    "aider": KnownClient(
        {"openai": OPENAI, "anthropic": ANTHROPIC},
        {"OPENAI_API_BASE": "{url}/v1", "OPENAI_BASE_URL": "{url}/v1", "ANTHROPIC_BASE_URL": "{url}"},
    ),
    "llm": KnownClient({"openai": OPENAI}, {"OPENAI_BASE_URL": "{url}/v1"}),
}
"""The clients that are known by name and need no `--env`."""
_BASES = {
    "ANTHROPIC_BASE_URL": "anthropic",
    "OPENAI_BASE_URL": "openai",
    "OPENAI_API_BASE": "openai",
    "GOOGLE_GEMINI_BASE_URL": "gemini",
}
"""The environment variables that name the address of a provider, each with the provider's vendor."""


def client_environment(
    client: KnownClient | None, given: Mapping[str, str], url: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """The environment for a client, with the client's own variables and the variables in `given` (from `--env`).

    `{url}` in the values of these variables is replaced by the proxy's address.
    """
    variables = {**(client.variables if client else {}), **given}
    return {**environment, **{name: value.replace("{url}", url) for name, value in variables.items()}}


def configured_upstreams(client: KnownClient | None, environment: Mapping[str, str]) -> list[str]:
    """The addresses of a client's providers, each as `VENDOR=URL`.

    An address that the user's environment sets replaces the client's default address.
    """
    if client is None:
        return []
    found = dict(client.upstreams)
    for name, vendor in _BASES.items():
        if vendor in found and environment.get(name):
            found[vendor] = environment[name]
    return [f"{vendor}={url}" for vendor, url in found.items()]
