"""Load the policy and the settings of a command from four layers.

The layers are the project's `foldline.toml`, the user's file, the environment and the flags. Each layer overrides the
layers before it. The project's file comes with a checkout, so it is the lowest layer: it never overrides what the user
wrote. A policy named by a flag is used as it is, without knobs from the other layers.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foldline.errors import ConfigError
from foldline.policy import (
    ENVIRONMENT,
    ENVIRONMENT_LAYER,
    Policy,
    environment_knobs,
    file_knobs,
    load,
    presets,
    suggest_name,
)

PROJECT_FILE = "foldline.toml"
USER_FILE = Path("foldline", "config.toml")
"""The path of the user's file below `$XDG_CONFIG_HOME`, which is `~/.config` by default."""
DEFAULT_PRESET = "balanced"
KEYS = {
    "model": "The model of transcripts that name no model",
    "ledger": "The ledger: a file or a postgresql:// address",
    "owner": "The owner of the sessions in a shared ledger",
}
"""The name and the description of each setting that is not a knob of the policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The effective policy and settings, with the layer that set each value."""

    policy: Policy
    name: str
    """The policy's name: its preset or its file."""
    values: Mapping[str, str]
    """The value of each setting (see `KEYS`); "" if it is not set."""
    sources: Mapping[str, str]
    """The layer that set each knob or setting. A knob or setting that has its default value is not listed."""
    files: tuple[Path, ...]
    """The configuration files that were read, lowest layer first."""

    def model(self, transcript_model: str = "") -> str:
        """The model to use: the model of a flag, else the model of the transcript, else the configured model."""
        return self.values["model"] if self.sources.get("model") == "flag" else transcript_model or self.values["model"]


@dataclass(frozen=True, slots=True)
class _Layer:
    source: str
    values: Mapping[str, str]
    knobs: Mapping[str, Any]


def load_settings(  # noqa: PLR0913 (all are keyword-only)
    *,
    policy: str | None = None,
    model: str | None = None,
    window: int | None = None,
    ledger: str | None = None,
    owner: str | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    preset: str = DEFAULT_PRESET,
) -> Settings:
    """The effective settings for a command's flags, working folder and environment.

    `preset` is the preset of the policy if neither a flag nor a file nor the environment names one.
    """
    env = os.environ if environment is None else environment
    found = (project_file(folder or Path.cwd()), user_file(env))
    files = tuple(path for path in found if path is not None and path.is_file())
    layers = [*map(_from_file, files), _from_environment(env)]
    knobs: list[tuple[str, Mapping[str, Any]]] = [(layer.source, layer.knobs) for layer in layers]
    name = next((str(layer["preset"]) for _, layer in reversed(knobs) if layer.get("preset")), preset)
    if policy is not None:
        name, knobs = policy, [_policy_layer(policy)]
    if window is not None:
        knobs.append(("flag", {"window_tokens": window}))
    flags = {"model": model, "ledger": ledger, "owner": owner}
    layers.append(_Layer("flag", {name: value for name, value in flags.items() if value}, {}))
    effective, sources = load(knobs, preset=preset)
    values = dict.fromkeys(KEYS, "")
    for layer in layers:
        values |= layer.values
        sources |= dict.fromkeys(layer.values, layer.source)
    return Settings(policy=effective, name=name, values=values, sources=sources, files=files)


def user_file(environment: Mapping[str, str]) -> Path | None:
    """The path of the user's configuration file; None if there is no home folder. The file may not exist."""
    base = environment.get("XDG_CONFIG_HOME") or ""
    if not Path(base).is_absolute():
        home = environment.get("HOME") or os.path.expanduser("~")
        base = str(Path(home, ".config")) if Path(home).is_absolute() else ""
    return Path(base) / USER_FILE if base else None


def project_file(folder: Path) -> Path | None:
    """The project's configuration file; None if there is none.

    The folder and its parent folders are searched, up to the root of the repository. Outside a repository, only the
    folder itself is searched, because a parent folder may belong to other users.
    """
    folders = [folder, *folder.parents]
    root = next((index for index, one in enumerate(folders) if (one / ".git").exists()), 0)
    return next((one / PROJECT_FILE for one in folders[: root + 1] if (one / PROJECT_FILE).is_file()), None)


def _from_file(path: Path) -> _Layer:
    """The layer of a configuration file: settings at its top level, knobs in its table `policy`."""
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}", hint="correct the file or remove it") from None
    knobs = found.pop("policy", {})
    if not isinstance(knobs, dict):
        raise ConfigError(
            f"{path}: [policy] must be a table of knobs", hint="write a section [policy] with one line per knob"
        )
    for name, value in found.items():
        if name not in KEYS:
            raise ConfigError(f"{path}: unknown setting {name!r}", hint=_hint(name))
        if not isinstance(value, str):
            raise ConfigError(f"{path}: {name} must be a string, not {value!r}", hint="put it in quotes")
    return _Layer(str(path), {name: _absolute(name, value, path.parent) for name, value in found.items()}, knobs)


def _absolute(name: str, value: str, folder: Path) -> str:
    """The value of a setting. The relative path of a ledger is joined to `folder`, the configuration file's folder."""
    if name != "ledger" or not value or "://" in value or value.startswith("~"):
        return value
    return str(folder / value)


def _hint(name: str) -> str:
    if name in {"preset", *Policy.__slots__}:
        return "write a knob of the policy below [policy]"
    return suggest_name(name, [*KEYS, "policy"])


def _from_environment(environment: Mapping[str, str]) -> _Layer:
    given = {name: environment.get(f"{ENVIRONMENT}{name.upper()}", "") for name in KEYS}
    return _Layer(
        ENVIRONMENT_LAYER, {name: value for name, value in given.items() if value}, environment_knobs(environment)
    )


def _policy_layer(policy: str) -> tuple[str, Mapping[str, Any]]:
    """The source and the knobs of the policy that a flag names: a preset or a TOML file."""
    if policy in presets():
        return "flag", {"preset": policy}
    if not Path(policy).is_file():
        names = ", ".join(presets())
        raise ConfigError(f"unknown preset or file {policy!r}", hint=f"use one of {names}, or a TOML file")
    return policy, file_knobs(Path(policy))
