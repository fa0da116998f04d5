"""Digesters: models that write the digests of a session. Pass one as `digester=` to `Session` or `foldline.open`.

    digesters.anthropic("claude-haiku-4-5")                             # ANTHROPIC_API_KEY, or api_key=…
    digesters.openai("gpt-5-mini")                                      # OPENAI_API_KEY, or api_key=…
    digesters.openai_compatible("qwen3", "http://127.0.0.1:8080/v1")    # vLLM, llama.cpp, Ollama, a gateway
    with digesters.local_model() as digester: ...                       # a small model in this process
    digesters.function(complete)                                        # your own function, sync or async

A session also accepts a function directly: `Session(digester=complete)`. `complete` gets a `DigesterCall`
(`call.system`, `call.text`, `call.max_tokens`) and returns a text, the reply object of an SDK, or a `DigesterReply`.
Without a digester, foldline writes the digest itself, without a model; `local_digest(messages, cap=…)` returns it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from foldline.digest.digester import Digester, DigesterCall, DigesterReply
from foldline.digest.endpoints import anthropic, function, local_model, openai
from foldline.digest.extract.facts import extract_facts
from foldline.digest.local import local_digest_text
from foldline.message import Message
from foldline.policy import Policy

__all__ = ["Digester", "DigesterCall", "DigesterReply", "anthropic", "function", "local_model", "openai"]
__all__ += ["local_digest", "openai_compatible"]


def openai_compatible(model: str, base_url: str, *, api_key: str = "none", **options: Any) -> Digester:
    """A digester at a server that speaks OpenAI's Chat Completions, such as vLLM, llama.cpp, Ollama or a gateway.

    The options are the same as for `openai`: `window` and `reply` (the model's limits in tokens), `reasoning`, `extra`.
    """
    return openai(model, base_url=base_url, api_key=api_key, **options)


def local_digest(messages: Sequence[Message], *, cap: int, size: Callable[[str], int] = len) -> str:
    """The digest of these messages that foldline writes without a model. `size` of its text is at most `cap`.

    `size` measures a text: `len` counts characters, and any token counter works too.
    """
    facts = extract_facts(messages, 0)
    return local_digest_text(facts, max_tokens=cap, count_tokens=size, header=Policy().digest_header)
