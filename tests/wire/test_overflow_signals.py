"""Every known answer to a request that is too large is recognised, and nothing else is."""

from __future__ import annotations

import json

import pytest

from foldline.wire.overflow_signals import is_overflow_answer

OVERFLOWS = {
    "anthropic": (400, "prompt is too long: 207791 tokens > 200000 maximum"),
    "anthropic with the reply": (
        400,
        (
            "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length or "
            "`max_tokens` and try again"
        ),
    ),
    "bedrock": (400, "Input is too long for requested model."),
    "gateway": (400, "capability_rejected: prompt_too_long"),
    "openai": (
        400,
        (
            "This model's maximum context length is 4097 tokens. However, your messages resulted in 4294 tokens. "
            "Please reduce the length of the messages."
        ),
    ),
    "openai responses": (
        400,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    "gemini": (400, "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."),
    "vllm": (
        400,
        (
            "This model's maximum context length is 8192 tokens. However, you requested 512 output tokens and your "
            "prompt contains at least 9000 input tokens, for a total of 9512 tokens."
        ),
    ),
    "llama.cpp": (400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"),
    "ollama": (400, "the prompt is longer than the context length currently available to the model; see the docs"),
    "xai": (400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens"),
    "groq": (400, "Please reduce the length of the messages or completion."),
    "openrouter": (
        400,
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 9000 tokens",
    ),
    "copilot": (400, "prompt token count of 90000 exceeds the limit of 64000"),
    "mistral": (
        400,
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
    ),
    "lm studio": (400, "tokens to keep from the initial prompt is greater than the context length"),
    "kimi": (400, "Your request exceeded model token limit: 131072 (requested: 140000)"),
    "minimax": (400, "invalid params, context window exceeds limit"),
    "cerebras": (400, "Current length is 9000 while limit is 8192"),
    "litellm": (400, "litellm.ContextWindowExceededError: too much"),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_known_texts(name: str) -> None:
    status, text = OVERFLOWS[name]
    assert is_overflow_answer(
        status, json.dumps({"error": {"message": text, "type": "invalid_request_error"}}).encode()
    )
    assert not is_overflow_answer(429, json.dumps({"error": {"message": text}}).encode())
    assert not is_overflow_answer(401, json.dumps({"error": {"message": text}}).encode())


def test_known_codes_and_sizes_in_bytes() -> None:
    assert is_overflow_answer(400, b'{"error": {"code": "context_length_exceeded", "message": "?"}}')
    assert is_overflow_answer(500, b'{"error": {"type": "exceed_context_size_error", "message": "?"}}')
    assert is_overflow_answer(413, b'{"type": "error", "error": {"type": "request_too_large", "message": "?"}}')
    assert is_overflow_answer(
        400, b'[{"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed (1)."}}]'
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"error": {"message": "messages.3: tool_use ids were found without tool_result blocks"}}'),
        (
            400,
            b'{"error": {"message": "max_tokens: 200000 > 64000, the maximum number of output tokens"}}',
        ),
        (400, b'{"error": {"message": "Rate limit reached: maximum context length is 5 per minute"}}'),
        (429, b'{"error": {"code": "context_length_exceeded"}}'),
        (500, b'{"error": {"message": "prompt is too long"}}'),
        (529, b""),
        (400, b""),
        (400, b"null"),
        (400, b"[1]"),
        (400, b'{"error": 5}'),
        (400, b'{"error": {"code": {"a": 1}, "type": [1], "message": {"text": "?"}}}'),
        (404, b'{"error": {"message": "model: prompt is too long"}}'),
    ],
)
def test_other_answers(status: int, body: bytes) -> None:
    assert not is_overflow_answer(status, body)
