"""The vendors' own Python SDKs work through the proxy, with tools, streams and several folds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from foldline.testing.provider import ScriptedReply, SimulatedProvider
from support.provider_requests import TOOL
from support.proxy_agents import BOUND, MODELS, folding, sessions

pytest.importorskip("aiohttp")
anthropic = pytest.importorskip("anthropic")
openai = pytest.importorskip("openai")
genai = pytest.importorskip("google.genai")
REQUESTS = 60


def script(provider: SimulatedProvider, number: int, thinking: str = "") -> bool:
    """Set the next reply; returns whether it calls a tool."""
    calls = number % 4 < 3
    call = (("bash", {"command": f"cat file{number}.py"}),) if calls else ()
    provider.script(ScriptedReply(thinking=thinking, text=f"Step {number}. " + "All is well. " * 10, calls=call))
    return calls


def output(number: int) -> str:
    return f"output {number}: " + f"line{number} " * 200


def test_anthropic(tmp_path: Path) -> None:
    with (
        folding(tmp_path) as (provider, running),
        anthropic.Anthropic(base_url=running.url, api_key="x", max_retries=0) as client,
    ):
        messages: list[Any] = []
        calls: list[Any] = []
        for number in range(REQUESTS):
            results = [{"type": "tool_result", "tool_use_id": one.id, "content": output(number)} for one in calls]
            messages.append({"role": "user", "content": results or f"Please go on with part {number}."})
            script(provider, number, "Let me think.")
            options: dict[str, Any] = {"model": BOUND, "max_tokens": 300, "tools": [TOOL], "messages": messages}
            with client.messages.stream(**options, thinking={"type": "adaptive"}) as stream:
                reply = stream.get_final_message()
            messages.append({"role": "assistant", "content": reply.content})
            calls = [block for block in reply.content if block.type == "tool_use"]
        count = client.messages.count_tokens(model=BOUND, tools=[TOOL], messages=messages[:-1])
        assert count.input_tokens < 12_000
        assert provider.refused == []
    ((_, recorded, folds),) = sessions(tmp_path)
    assert (recorded, folds >= 2) == (len(messages), True)


def test_openai_chat(tmp_path: Path) -> None:
    tool = {"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}
    with (
        folding(tmp_path) as (provider, running),
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0) as client,
    ):
        messages: list[Any] = [{"role": "developer", "content": "Be careful."}]
        calls: list[Any] = []
        for number in range(REQUESTS):
            messages += [{"role": "tool", "tool_call_id": one.id, "content": output(number)} for one in calls]
            if not calls:
                messages.append({"role": "user", "content": f"Please go on with part {number}."})
            script(provider, number)
            reply = client.chat.completions.create(model=MODELS["openai"], tools=[tool], messages=messages)
            messages.append(reply.choices[0].message)
            calls = reply.choices[0].message.tool_calls or []
        assert provider.refused == []
    ((_, recorded, folds),) = sessions(tmp_path)
    assert (recorded, folds >= 2) == (len(messages), True)


def test_openai_responses(tmp_path: Path) -> None:
    tool = {"type": "function", "name": "bash", "parameters": {"type": "object"}, "strict": False}
    with (
        folding(tmp_path) as (provider, running),
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="x", max_retries=0) as client,
    ):
        items: list[Any] = []
        calls: list[Any] = []
        for number in range(REQUESTS):
            items += [
                {"type": "function_call_output", "call_id": one.call_id, "output": output(number)} for one in calls
            ]
            if not calls:
                items.append({"role": "user", "content": f"Please go on with part {number}."})
            script(provider, number, "Let me think.")
            include = ["reasoning.encrypted_content"]
            model = MODELS["openai-responses"]
            with client.responses.stream(
                model=model, tools=[tool], input=items, store=False, include=include
            ) as stream:
                for _ in stream:
                    pass
                reply = stream.get_final_response()
            items += [one.model_dump(exclude_none=True, exclude={"status", "parsed_arguments"}) for one in reply.output]
            for one in items:
                for part in one.get("content", []) if one.get("type") == "message" else []:
                    part.pop("parsed", None)
            calls = [one for one in reply.output if one.type == "function_call"]
        assert provider.refused == []
    ((_, recorded, folds),) = sessions(tmp_path)
    assert (recorded, folds >= 2) == (len(items), True)


def test_gemini(tmp_path: Path) -> None:
    types = genai.types
    with folding(tmp_path) as (provider, running):
        client = genai.Client(api_key="x", http_options=types.HttpOptions(base_url=running.url))
        declaration = types.FunctionDeclaration(name="bash", parameters=types.Schema(type="OBJECT", properties={}))
        config = types.GenerateContentConfig(
            tools=[types.Tool(function_declarations=[declaration])],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )
        contents: list[Any] = []
        calls: list[Any] = []
        for number in range(REQUESTS):
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(id=one.id, name=one.name, response={"o": output(number)})
                )
                for one in calls
            ]
            contents.append(types.Content(role="user", parts=parts or [types.Part(text=f"Go on with part {number}.")]))
            script(provider, number)
            reply = client.models.generate_content(model=MODELS["gemini"], contents=contents, config=config)
            contents.append(reply.candidates[0].content)
            calls = reply.function_calls or []
        client.close()
        assert provider.refused == []
    ((_, recorded, folds),) = sessions(tmp_path)
    assert (recorded, folds >= 2) == (len(contents), True)
