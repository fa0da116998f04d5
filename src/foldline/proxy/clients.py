"""How to make known clients use a proxy, without a change to their configuration files."""

from __future__ import annotations

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

    vendor: str
    upstream: str
    """The provider's address, if the environment does not set another one."""
    variables: Mapping[str, str]
    arguments: tuple[str, ...] = ()


CLIENTS = {
    "claude": KnownClient("anthropic", ANTHROPIC, {"ANTHROPIC_BASE_URL": "{url}"}),
    "codex": KnownClient(
        "openai",
        OPENAI,
        {},
        (
            *("-c", "model_provider=foldline"),
            "-c",
            'model_providers.foldline={{name="foldline",base_url="{url}/v1",env_key="OPENAI_API_KEY",wire_api="responses"}}',
        ),
    ),
    "gemini": KnownClient("gemini", GEMINI, {"GOOGLE_GEMINI_BASE_URL": "{url}"}),
    "aider": KnownClient(
        "openai", OPENAI, {"OPENAI_API_BASE": "{url}/v1", "OPENAI_BASE_URL": "{url}/v1", "ANTHROPIC_BASE_URL": "{url}"}
    ),
}
"""The clients that are known by name and need no `--env`."""
_BASES = {"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL"}


def client_environment(
    client: KnownClient | None, given: Mapping[str, str], url: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """The environment for a client. Its own variables and those of `--env` are set to the address of the proxy."""
    variables = {**(client.variables if client else {}), **given}
    return {**environment, **{name: value.replace("{url}", url) for name, value in variables.items()}}


def configured_upstream(client: KnownClient | None, environment: Mapping[str, str]) -> str:
    """The provider's address: the one that the user's environment sets for a client, or else the client's default; ""
    if unknown.
    """
    if client is None:
        return ""
    for name in client.variables:
        if name in _BASES and environment.get(name):
            return environment[name]
    return client.upstream
