"""What a provider refuses: its grammar and limits, judged on the body that would be sent."""

from foldline.wire.rules.judge import RULES, Limits, Violation, check, limits_of

__all__ = ["RULES", "Limits", "Violation", "check", "limits_of"]
