"""The settings of a proxy."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, TypeAlias, get_args

from foldline.errors import ConfigError
from foldline.policy import Policy
from foldline.proxy.upstream_client import UpstreamLimits
from foldline.proxy.upstreams import Upstreams

Mode: TypeAlias = Literal["observe", "fold", "off"]
MODES: tuple[Mode, ...] = get_args(Mode)
MAX_BYTES = 64 * 1024 * 1024
"""Maximum size of a request body in bytes.

This is twice the size that Anthropic accepts; other providers publish no limit.
"""
MIN_TOKEN = 16
DEFAULT_PRESET = "proxy"
"""The preset of a proxy if no other is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """All settings of a proxy. Impossible settings raise `ConfigError`."""

    upstreams: Upstreams
    mode: Mode = "fold"
    ledger: str = ""
    """A path or a `postgresql://` address. In the mode `off`, it may be "": then nothing is recorded."""
    host: str = "127.0.0.1"
    port: int = 8460
    token: str = field(default="", repr=False)
    """The token that the API under /foldline/ demands."""
    policy: Policy = field(default_factory=lambda: Policy.preset(DEFAULT_PRESET))
    model: str = ""
    """The model whose window and prices are used if a request names no model."""
    max_bytes: int = MAX_BYTES
    limits: UpstreamLimits = field(default_factory=UpstreamLimits)
    prepare_s: float = 5.0
    """Time limit in seconds for foldline's work before a request is sent. If the work takes longer, the request is
    passed on unchanged.
    """
    is_shared: bool = False
    """Whether other processes serve the same sessions. If so, the messages that other processes have added are read
    before each request.
    """
    single_user: bool = False
    """Whether all credentials belong to one person. If so, a session is still found after a credential was renewed."""
    answers_compaction: bool = False
    """Whether foldline answers a client's requests for compaction from the ledger."""
    offers_recall: bool = False
    """Whether the recall tool is offered to models. The proxy answers the calls of the tool."""
    refuses_partial: bool = False
    """Whether requests with only the new messages are refused, so that the client sends its whole history."""
    holdout_ratio: float = 0.0
    """The share of new sessions that are recorded but never folded, to measure savings."""

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise ConfigError(f"unknown mode {self.mode!r}", hint=f"use one of {', '.join(MODES)}")
        if self.mode != "off" and not self.ledger:
            raise ConfigError(
                f"mode {self.mode!r} needs a ledger", hint="name a ledger with --ledger, or use --mode off"
            )
        if not self.is_loopback and not self.token:
            raise ConfigError(
                f"{self.host} can be reached from other machines, and no token is set",
                hint="set --token (or FOLDLINE_TOKEN), or use --host 127.0.0.1",
            )
        if self.token and len(self.token) < MIN_TOKEN:
            raise ConfigError(f"the token has fewer than {MIN_TOKEN} characters", hint="use a longer, random token")
        if not 0 <= self.holdout_ratio <= 1:
            raise ConfigError(f"a hold-out share of {self.holdout_ratio} is not between 0 and 1", hint="5 % is 0.05")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the proxy."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"
