"""The options that commands share, each defined once, so that they mean the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from foldline.cli.shared.settings import settings

Command = TypeVar("Command", bound=Callable[..., Any])


class PolicyName(click.ParamType[str]):
    """A preset or a TOML file; only its completion is clever, what it names is checked where it is read."""

    name = "policy"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002  # click's signature
        """The presets, and files."""
        from foldline.policy import presets  # noqa: PLC0415  # only when somebody presses tab

        return [CompletionItem(one) for one in presets() if one.startswith(incomplete)] or [
            CompletionItem(incomplete, type="file")
        ]


_POLICY = "A preset or a TOML file, taken exactly as it is instead of the configured policy."
_MODEL = "Count and fit for this model instead of the one in the file."
_WINDOW = "The window in tokens, instead of the model's own."

_policy = click.option("--policy", "-p", type=PolicyName(), metavar="NAME|FILE", help=_POLICY)
_policies = click.option(
    "--policy", "-p", type=PolicyName(), metavar="NAME|FILE", multiple=True, help=f"{_POLICY} Repeatable."
)
_model = click.option("--model", "-m", metavar="NAME", help=_MODEL)
_window = click.option("--window", "-w", type=click.IntRange(min=1), metavar="TOKENS", help=_WINDOW)


def policy_flags(command: Callable[..., None]) -> Callable[..., None]:
    """The same three as they were given, for a command that wants to see what is wrong with them."""
    return _policy(_model(_window(command)))


def chosen(command: Callable[..., None]) -> Callable[..., None]:
    """`--policy`, `--model`, `--window`: the command gets the `Settings` they lead to as `chosen`."""

    @wraps(command)
    def run(*args: Any, policy: str | None, model: str | None, window: int | None, **rest: Any) -> None:
        command(*args, chosen=settings(policy=policy, model=model, window=window), **rest)

    return policy_flags(run)


def chosen_each(command: Callable[..., None]) -> Callable[..., None]:
    """The same where `--policy` may be given several times: `chosen` is a tuple, one for each policy."""

    @wraps(command)
    def run(*args: Any, policy: tuple[str, ...], model: str | None, window: int | None, **rest: Any) -> None:
        every = tuple(settings(policy=one, model=model, window=window) for one in policy or (None,))
        command(*args, chosen=every, **rest)

    return _policies(_model(_window(run)))


def form(command: Command) -> Command:
    """`--format`: how a file is to be read."""
    from foldline.wire.formats import FORMATS  # noqa: PLC0415  # only for the commands that read transcripts

    return click.option("--format", "form", type=click.Choice(FORMATS), help="The format, where it is not clear.")(
        command
    )


def output(json_help: str) -> Callable[[Command], Command]:
    """`--json` and `--no-color`: what every command that reports something can do."""

    def add(command: Command) -> Command:
        command = click.option("--no-color", is_flag=True, expose_value=False, callback=_plain, help="No colour.")(
            command
        )
        return click.option("--json", "as_json", is_flag=True, help=json_help)(command)

    return add


def _plain(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value:
        ctx.color = False
