"""Where every command gets its policy and its settings from, so that no two of them read the configuration differently.

Four layers, later ones winning: `foldline.toml` of the project, the user's own file, the environment, the flags. A
project's file comes with a checkout, so it stands lowest: what a person wrote for themselves is never overruled by what
somebody else committed. A policy named by a flag is taken exactly as it is; knobs of the other layers change only the
policy that is configured.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.policy import ENVIRONMENT, Policy, environment_knobs, file_knobs, load, nearest, presets

PROJECT_FILE = "foldline.toml"
USER_FILE = Path("foldline", "config.toml")
"""Below `$XDG_CONFIG_HOME`, by default `~/.config`."""
DEFAULT_PRESET = "balanced"
KEYS = {
    "model": "The model, where a transcript does not name its own",
    "ledger": "Where the ledger is: a file, or a postgresql:// address",
    "owner": "Whose sessions, in a ledger that several share",
}
"""The settings beside the policy, each with what it means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is in force, and for each value the layer it came from."""

    policy: Policy
    name: str
    """What to call the policy: a preset's name, or the file it was read from."""
    values: Mapping[str, str]
    """The settings of `KEYS`; "" where nothing is set."""
    sources: Mapping[str, str]
    """By knob or setting; what is not in it is a default."""
    files: tuple[Path, ...]
    """The configuration files that were read, the lowest layer first."""

    def model(self, named: str = "") -> str:
        """The model to use where a transcript names one: a flag wins over it, a configured model does not."""
        return self.values["model"] if self.sources.get("model") == "flag" else named or self.values["model"]


@dataclass(frozen=True, slots=True)
class _Layer:
    """One source: its name, its settings and its knobs."""

    source: str
    values: Mapping[str, str]
    knobs: Mapping[str, Any]


def settings(  # noqa: PLR0913 (all are named at the call)
    *,
    policy: str | None = None,
    model: str | None = None,
    window: int | None = None,
    ledger: str | None = None,
    owner: str | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """The effective settings of a command, given its flags, the folder it runs in and its environment."""
    env = os.environ if environment is None else environment
    files = config_files(folder or Path.cwd(), env)
    layers = [*map(_from_file, files), _from_environment(env)]
    knobs: list[tuple[str, Mapping[str, Any]]] = [(layer.source, layer.knobs) for layer in layers]
    name = next((str(layer["preset"]) for _, layer in reversed(knobs) if layer.get("preset")), DEFAULT_PRESET)
    if policy is not None:
        name, knobs = policy, [_named(policy)]
    if window is not None:
        knobs.append(("flag", {"window_tokens": window}))
    flags = {"model": model, "ledger": ledger, "owner": owner}
    layers.append(_Layer("flag", {name: value for name, value in flags.items() if value}, {}))
    made, sources = load(knobs, preset=DEFAULT_PRESET)
    values = dict.fromkeys(KEYS, "")
    for layer in layers:
        values |= layer.values
        sources |= dict.fromkeys(layer.values, layer.source)
    return Settings(policy=made, name=name, values=values, sources=sources, files=files)


def config_files(folder: Path, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The configuration files that exist, the lowest layer first."""
    project = project_file(folder)
    user = user_file(environment)
    return tuple(path for path in (project, user) if path is not None and path.is_file())


def user_file(environment: Mapping[str, str]) -> Path | None:
    """Where the user's own file is, or would be; None where there is no home."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    if not Path(base).is_absolute():
        home = environment.get("HOME") or os.path.expanduser("~")
        base = str(Path(home, ".config")) if Path(home).is_absolute() else ""
    return Path(base) / USER_FILE if base else None


def project_file(folder: Path) -> Path | None:
    """The project's file: in this folder, or in one above it up to the root of its repository.

    Outside a repository only the folder itself counts: what lies in a shared folder above is nobody's project.
    """
    above = [folder, *folder.parents]
    root = next((place for place, one in enumerate(above) if (one / ".git").exists()), 0)
    return next((one / PROJECT_FILE for one in above[: root + 1] if (one / PROJECT_FILE).is_file()), None)


def _from_file(path: Path) -> _Layer:
    """A configuration file: the settings at its top, the knobs in its table `policy`."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read ({error})", hint="mend it or move it away") from None
    knobs = found.pop("policy", {})
    if not isinstance(knobs, dict):
        raise ConfigError(f"{path}: [policy] must be a table of knobs", hint='write [policy] and preset = "thrifty"')
    for name, value in found.items():
        if name not in KEYS:
            raise ConfigError(f"{path}: there is no setting {name!r}", hint=_place(name))
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {name} must be a text in quotes, not {value!r}")
    return _Layer(str(path), {name: _placed(name, value, path.parent) for name, value in found.items()}, knobs)


def _placed(name: str, value: str, folder: Path) -> str:
    """A ledger's file is named from the folder of the file that names it, wherever the command runs."""
    if name != "ledger" or not value or "://" in value or value.startswith("~"):
        return value
    return str(folder / value)


def _place(name: str) -> str:
    """Where a key belongs that stands at the top of a file and is no setting."""
    if name in {"preset", *Policy.__slots__}:
        return "a knob of the policy stands below [policy]"
    return nearest(name, [*KEYS, "policy"])


def _from_environment(environment: Mapping[str, str]) -> _Layer:
    given = {name: environment.get(f"{ENVIRONMENT}{name.upper()}", "") for name in KEYS}
    return _Layer(
        "environment", {name: value for name, value in given.items() if value}, environment_knobs(environment)
    )


def _named(policy: str) -> tuple[str, Mapping[str, Any]]:
    """The layer of a policy that a flag names: a preset, or a file of knobs."""
    if policy in presets():
        return "flag", {"preset": policy}
    if not Path(policy).is_file():
        names = ", ".join(presets())
        raise ConfigError(f"no preset or file is called {policy!r}", hint=f"use one of {names}, or a TOML file")
    return policy, file_knobs(Path(policy))
