"""Validation finds the rules that a request breaks. The check reads the JSON body that would be sent."""

from foldline.wire.validate.plain_request import Violation
from foldline.wire.validate.validator import check

__all__ = ["Violation", "check"]
