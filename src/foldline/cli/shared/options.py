"""Options that several commands share: policy, model, window, format and output."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from foldline.cli.shared.settings import load_settings

Command = TypeVar("Command", bound=Callable[..., Any])


class PolicyName(click.ParamType[str]):
    """The name of a preset or a TOML file. This type adds shell completion; `load_settings` checks the value."""

    name = "policy"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  # click's signature
        """The presets that begin with `incomplete`. If no preset matches, the shell completes file names."""
        from foldline.policy import presets  # noqa: PLC0415  # only during completion

        return [CompletionItem(one) for one in presets() if one.startswith(incomplete)] or [
            CompletionItem(incomplete, type="file")
        ]


class WholeNumber(click.IntRange):
    """An integer option with limits. Error messages name the type "whole number"."""

    name = "whole number"


_POLICY = "Use this preset or TOML file as it is, without the configured policy."
_MODEL = "Count and fit for this model, not for the one that a file or a request names."
_WINDOW = "Use a window of this size, not the model's."

_policy = click.option("--policy", "-p", type=PolicyName(), metavar="NAME|FILE", help=_POLICY)
_policies = click.option(
    "--policy", "-p", type=PolicyName(), metavar="NAME|FILE", multiple=True, help=f"{_POLICY} Repeatable."
)
_model = click.option("--model", "-m", metavar="NAME", help=_MODEL)
_window = click.option("--window", "-w", type=WholeNumber(min=1), metavar="TOKENS", help=_WINDOW)


def raw_policy_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--policy`, `--model` and `--window`. The command receives their values unchanged."""
    return _policy(_model(_window(command)))


def policy_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--policy`, `--model` and `--window`; the command receives the resulting `Settings` as `settings`."""

    @wraps(command)
    def run(*args: Any, policy: str | None, model: str | None, window: int | None, **rest: Any) -> None:
        command(*args, settings=load_settings(policy=policy, model=model, window=window), **rest)

    return raw_policy_options(run)


def policies_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--policy` (repeatable), `--model` and `--window`.

    The command receives a tuple of `Settings` as `policies`.
    """

    @wraps(command)
    def run(*args: Any, policy: tuple[str, ...], model: str | None, window: int | None, **rest: Any) -> None:
        policies = tuple(load_settings(policy=one, model=model, window=window) for one in policy or (None,))
        command(*args, policies=policies, **rest)

    return _policies(_model(_window(run)))


def system_tokens_option(command: Command) -> Command:
    """Add `--system-tokens`."""
    words = (
        "Set the size of the hidden part: the system prompt and tools that are not in the file. "
        "Default: the size that foldline inspect shows."
    )
    add = click.option("--system-tokens", type=WholeNumber(min=0), default=None, metavar="TOKENS", help=words)
    return add(command)


def format_option(command: Command) -> Command:
    """Add `--format`, the format in which a file is read."""
    from foldline.wire.formats import FORMATS  # noqa: PLC0415  # only for the commands that read transcripts

    text = f"Read the file in this format; default: detect it. One of: {', '.join(FORMATS)}."
    add = click.option("--format", type=click.Choice(FORMATS), metavar="FORMAT", help=text)
    return add(command)


def conversation_option(text: str) -> Callable[[Command], Command]:
    """Add `--conversation`, the number of a conversation in a file."""
    return click.option("--conversation", type=WholeNumber(min=1), metavar="NUMBER", help=text)


def output_options(json_help: str) -> Callable[[Command], Command]:
    """Add `--json` and `--no-color`."""

    def add(command: Command) -> Command:
        command = click.option(
            "--no-color", is_flag=True, expose_value=False, callback=_disable_color, help="Print without colour."
        )(command)
        return click.option("--json", "as_json", is_flag=True, help=json_help)(command)

    return add


def _disable_color(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.color = False
