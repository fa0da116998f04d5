"""The agents whose packages are installed, by name."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any
from warnings import catch_warnings

_AGENTS = {
    "anthropic": ("sdk_agents", "AnthropicAgent", ("anthropic",)),
    "openai": ("sdk_agents", "OpenAiChatAgent", ("openai",)),
    "openai-responses": ("sdk_agents", "OpenAiResponsesAgent", ("openai",)),
    "gemini": ("sdk_agents", "GeminiAgent", ("google.genai",)),
    "langchain-anthropic": ("langchain_agents", "LangChainAnthropicAgent", ("langchain", "langchain_anthropic")),
    "langchain-openai": ("langchain_agents", "LangChainOpenAiAgent", ("langchain", "langchain_openai")),
    "langchain-responses": ("langchain_agents", "LangChainResponsesAgent", ("langchain", "langchain_openai")),
    "pydantic-ai-anthropic": ("pydantic_agents", "PydanticAnthropicAgent", ("pydantic_ai",)),
    "pydantic-ai-openai": ("pydantic_agents", "PydanticOpenAiAgent", ("pydantic_ai",)),
    "pydantic-ai-responses": ("pydantic_agents", "PydanticResponsesAgent", ("pydantic_ai",)),
    "openai-agents-responses": ("openai_agents_agents", "OpenAiAgentsAgent", ("agents",)),
    "openai-agents-chat": ("openai_agents_agents", "OpenAiAgentsChatAgent", ("agents",)),
    "llama-index-anthropic": ("llama_index_agents", "LlamaIndexAnthropicAgent", ("llama_index", "anthropic")),
    "llama-index": ("llama_index_agents", "LlamaIndexAgent", ("llama_index",)),
    "strands": ("strands_agents", "StrandsAgent", ("strands",)),
    "google-adk": ("adk_agents", "AdkAgent", ("google.adk",)),
    "agent-framework-chat": ("maf_agents", "MafChatAgent", ("agent_framework.openai",)),
    "agent-framework-responses": ("maf_agents", "MafResponsesAgent", ("agent_framework.openai",)),
    "smolagents": ("smolagents_agents", "SmolagentsAgent", ("smolagents",)),
    "haystack": ("haystack_agents", "HaystackAgent", ("haystack",)),
    "hermes": ("hermes_agents", "HermesAgent", ("run_agent", "hermes_cli")),
    "crewai": ("crewai_agents", "CrewAiAgent", ("crewai",)),
}
"""For each agent: its module, its class, and the packages that it needs."""
AGENTS = tuple(_AGENTS)


def agent_class(name: str) -> Any:
    """The class of an agent; None if a package that it needs is missing."""
    module, kind, packages = _AGENTS[name]
    if not all(map(is_installed, packages)):
        return None
    with catch_warnings(action="ignore"):  # of the frameworks
        return getattr(import_module(f"support.framework_agents.{module}"), kind)


def is_installed(package: str) -> bool:
    """Whether a package can be imported."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent is missing
        return False
