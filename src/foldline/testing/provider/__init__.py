"""A strict simulated provider, which refuses the same requests as Anthropic, OpenAI and Gemini, in the same words.

The rules are taken from the vendors' documentation, the types of their SDKs and the errors that users report. The
provider shares no code with foldline's own wire formats, so that it can find mistakes in them.
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
