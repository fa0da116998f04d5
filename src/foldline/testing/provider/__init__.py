"""A strict simulated provider: it refuses what Anthropic, OpenAI and Gemini refuse, in their words.

It is written from the vendors' documentation, the types of their SDKs and the errors that users report, and shares no
code with foldline's own wire formats, so that it can judge them.
"""

from __future__ import annotations

from foldline.testing.provider.account import Account
from foldline.testing.provider.error_reply import FORMATS, ErrorReply
from foldline.testing.provider.judge import judge
from foldline.testing.provider.script import ScriptedFailure, ScriptedReply, call, fail
from foldline.testing.provider.simulated import ReceivedRequest, SimulatedProvider
from foldline.testing.provider.window_rules import SimulatedModel

__all__ = [
    "FORMATS",
    "Account",
    "ErrorReply",
    "ReceivedRequest",
    "ScriptedFailure",
    "ScriptedReply",
    "SimulatedModel",
    "SimulatedProvider",
    "call",
    "fail",
    "judge",
]
