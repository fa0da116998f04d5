"""How thorough property tests are: a few hundred examples with the suite, over ten thousand a night.

    pytest tests/engine --hypothesis-profile=nightly

The suite tries the same examples each time, so that a change is judged by what it changed; the nightly run looks for
new ones. A test that names its own number of examples keeps it.
"""

from __future__ import annotations

import signal

from hypothesis import settings

settings.register_profile("suite", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("nightly", max_examples=10_500, deadline=None)
settings.load_profile("suite")

# A shell that starts the suite in the background ignores these signals, and the tested commands would inherit that.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

pytest_plugins = ["support.browsers", "support.command_ledgers", "support.ledgers", "support.vendor_models"]
