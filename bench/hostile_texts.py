"""Texts that make a careless regular expression slow. Each text repeats a unit, and has a prefix and a suffix.

A regular expression is slow if it starts a match at many positions and reads far from each of them. So the units are
texts that a pattern begins with (opening tags, key prefixes, quotes), texts that a pattern skips (whitespace, words,
digits), and pairs of these. The suffix makes the match fail at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple


class HostileText(NamedTuple):
    """A text of any size."""

    name: str
    unit: str
    prefix: str = ""
    suffix: str = ""

    def make(self, chars: int) -> str:
        """The text with about this many characters."""
        return self.prefix + self.unit * max(1, chars // len(self.unit)) + self.suffix


_UNITS = {
    "space": " ",
    "tab": "\t",
    "line end": "\n",
    "carriage return": "\r",
    "crlf": "\r\n",
    "line separator": "\u2028",
    "no-break space": "\xa0",
    "less-than": "<",
    "greater-than": ">",
    "double quote": '"',
    "single quote": "'",
    "backtick": "`",
    "backslash": "\\",
    "escaped line end": "\\n",
    "open brace": "{",
    "close brace": "}",
    "open bracket": "[",
    "open parenthesis": "(",
    "digit": "1",
    "dot": ".",
    "comma": ",",
    "colon": ":",
    "semicolon": ";",
    "dash": "-",
    "underscore": "_",
    "hash": "#",
    "asterisk": "*",
    "equals": "=",
    "ampersand": "&",
    "pipe": "|",
    "slash": "/",
    "at sign": "@",
    "tilde": "~",
    "dollar": "$",
    "per cent": "%",
    "plus": "+",
    "quotation mark »": "»",
    "lower-case letter": "a",
    "upper-case letter": "A",
    "hex digit": "f",
    "non-ASCII letter": "é",
    "CJK": "請",
    "CJK full stop": "。",
    "Hangul": "이",
    "Arabic": "ن",
    "emoji": "🙂",
    "zero-width space": "\u200b",
    "zero-width joiner": "a\u200d",
    "combining mark": "\u0301",
    "combined letters": "e\u0301",
    "letter that grows in lower case": "İ",
    "lone surrogate": "\ud800",
    "null": "\x00",
    "byte order mark": "\ufeff",
}
"""Single characters."""

_PHRASES = {
    "open system-reminder": "<system-reminder>",
    "open command-message": "<command-message>",
    "open command-name": "<command-name>",
    "open ide tag": "<ide_opened_file>",
    "open and close of different tags": "<ide_a></ide_b>",
    "open think": "<think>",
    "open tool call": "<tool_call>",
    "open digest tag": "<session_digest>",
    "open local-command": "<local-command-stdout>",
    "open environment_context": "<environment_context>",
    "open any tag": "<abcd>",
    "half a tag": "</",
    "sk-": "sk-",
    "sk- key": "sk-aB3dE6gH9jK2mN5pQ8sT1vW4\n",
    "sk- key in quotes": '"sk-aB3dE6gH9jK2mN5pQ8sT1vW4" +\n',
    "eyJ": "eyJ",
    "eyJ line": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9a1b2\n",
    "eyJ escaped line": "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9a1b2\\n",
    "ghp_": "ghp_",
    "ghp_ line": "ghp_aB3dE6gH9jK2mN5pQ8sT1vW4xY7z\n",
    "AKIA line": "AKIAIOSFODNN7EXAMPLE\n",
    "SG.": "SG.",
    "ya29.": "ya29.a1",
    "webhook": "hooks.slack.com/services/T0/B0/",
    "BEGIN": "-----BEGIN ",
    "BEGIN PRIVATE KEY": "-----BEGIN PRIVATE KEY-----\n",
    "END PRIVATE KEY": "-----END PRIVATE KEY-----\n",
    "armoured line": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n",
    "PEM gap": "> | + # ",
    "Private-Lines": "Private-Lines: 12\n",
    "bearer": "Bearer ",
    "bearer value": "Authorization: Bearer aB3dE6gH9jK2mN5p\n",
    "basic": "Basic ",
    "cookie": "Cookie: a=",
    "login": "login a ",
    "login spaces": "login a    ",
    "curl": "curl ",
    "curl -u": "curl -u a",
    "sshpass": "sshpass -p ",
    "password": "password",
    "password=": "password=",
    "password:": "password: ",
    "password is": "password is 1 ",
    "password in quotes": "passwort ist ' ",
    "password column": "| password ",
    "password word": "use the password a1 ",
    "password = value": "password = 'aB3$dE6gH9jK'\n",
    "password with spaces": "password        ",
    "PASSWORD wrapped": 'PASSWORD="aB3dE6gH9jK2" +\n',
    "token:": "token: ",
    "_key": "_key",
    "secret type": "secret: str | None = ",
    ":AA": "12345678:AA",
    "JQQJ9": "JQQJ9",
    "-us": "0a-us1",
    "Q~": "a1Q~",
    "discord token": ".abcdef.",
    "url": "https://example.com/a/b?c=d&e=f ",
    "url without end": "https://example.com/",
    "url user": "https://user:",
    "url at": "a://b@",
    "url parameter": "?token=",
    "url parameters": "&a_b_token=x",
    "scheme": "a+b-c.",
    "data url": "data:;base64,",
    "data url parameters": "data:a;b;c",
    "path": "/usr/lib/python3/dist-packages/a.py ",
    "path without end": "a/b.c/",
    "Windows path": "C:\\Users\\name\\file.txt ",
    "file with line": "a.py-12-",
    "file name": "a.py",
    "file and line": "src/main.go:12:3: ",
    "ANSI": "\x1b[31m",
    "ANSI without end": "\x1b[3;",
    "ANSI title": "\x1b]0;",
    "base64": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=",
    "base64 line": "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoxMjM0NTY3ODkwYWJjZGVm\n",
    "hex": "0123456789abcdef",
    "uuid": "123e4567-e89b-12d3-a456-426614174000 ",
    "number": "12345 ",
    "grouped number": "1,000",
    "decimal": "1.",
    "version": "1.2.3-rc.4+",
    "time": "12:34:56 ",
    "fence": "```\n",
    "fence with language": "```python\n",
    "tilde fence": "~~~",
    "table": "| a | b |\n",
    "table rule": "|---",
    "bullet": "- ",
    "bullets": "- a\n",
    "numbered list": "1. a\n",
    "heading": "# a\n",
    "headings": "#",
    "heading and space": "# ",
    "quote": "> ",
    "bold": "**a",
    "link": "[a](",
    "Traceback": "Traceback (most recent call last):\n",
    "Traceback frame": '  File "a.py", line 1, in b\n',
    "Error": "aError: b ",
    "FAIL": "--- FAIL: a\n",
    "FAILED words": "FAILED ",
    "failed test": "FAILED a::",
    "cross": "✗ a (1",
    "exit code": "exit code ",
    "Exit code line": "Exit code: 1\n",
    "E and spaces": "E   ",
    "diff hunk": "@@ -1,2 +1,2 @@\n",
    "diff": "--- a/b\n+++ b/b\n",
    "diff line": "+a\n-b\n",
    "patch": "*** Update File: a\n",
    "patch without end": "*** Update File: ",
    "git commit": "git commit ",
    "git commit -a": "git commit -a\t",
    "git commit -m": 'git commit -m "a" && ',
    "heredoc": "$(cat <<EOF ",
    "heredoc open": "$(cat <<'",
    "cd": "cd a && ",
    "pipe tail": "| tail ",
    "or true": "|| true ",
    "redirect": "2>&1 ",
    "echo": "; echo ",
    "checkout": "git checkout -- a; ",
    "JSON object": '{"a":',
    "JSON array": "[[",
    "JSON string": '"\\"',
    "JSON pair": '"a": "b", ',
    "JSON escaped": '\\"a\\":',
    "JSON unicode escape": "\\u0041",
    "handle": "[#1-2, ",
    "handles": "#1 ",
    "pruned": "[pruned, ",
    "characters left out": "[1,000 characters left out; ",
    "earlier messages": "[1,000 earlier message",
    "redacted": "[redacted ",
    "redacted key": "[redacted api key]",
    "key of a call": '{"tool_name": ',
    "line with a key of a call": '{"tool_name": \n',
    "digest entry": "- a [#3-4]\n",
    "digest line": "[session digest",
    "speaker": "» you: a\n",
    "speaker at line": "\n» ",
    "control token": "<|im_start|>",
    "INST": "[INST]",
    "sentence": "A sentence. ",
    "sentence without space": "a.b!c?",
    "CJK sentence": "因为请不要。",
    "must": "must ",
    "because": "because ",
    "still": "still ",
    "question": "? ",
    "ignore instructions": "ignore all previous ",
    "you must": "you are now ",
    "words": "word ",
    "long word": "abcdefghij",
    "camel case": "aB",
    "upper and lower": "AAa",
    "snake case": "a_b",
    "kebab case": "a-b",
    "dotted name": "a.b",
    "letters and digits": "a1",
    "ticket": "AB-12 ",
    "line number": "12→a\n",
    "line number tab": "12\t",
    "short lines": "ab\n",
    "two line ends": "a\n\n",
    "line of spaces": "    \n",
    "indented quote": ' \t"\n',
    "command not found": "command not found ",
    "No such file": "/bin/sh: a: No such file or directory ",
    "no newline error": "a.go:1: b ",
    "Count": "/Count 1",
    "Page": "/Type /Page",
    "stack of quotes": "\"'`",
    "wrapped value": 'a1B2c3D4e5F6" +\n"',
    "mixed scripts": "aя請ا",
}
"""The beginnings of texts that foldline's patterns search for."""

_PAIRS = (
    "space",
    "line end",
    "carriage return",
    "double quote",
    "backslash",
    "lower-case letter",
    "digit",
    "dot",
    "dash",
)
"""Single characters that are also repeated in pairs."""


def _texts() -> Iterator[HostileText]:
    for name, unit in _UNITS.items():
        yield HostileText(name, unit)
    for name, unit in _PHRASES.items():
        yield HostileText(name, unit)
    for one, other in combinations(_PAIRS, 2):
        yield HostileText(f"{one}, {other}", _UNITS[one] + _UNITS[other])
    for name in ("space", "tab", "carriage return", "line end"):
        for mark in ("<", "[", "»", "#", "- ", '"', "password", "cd", "git commit", "| tail", "E", "FAIL", "a."):
            yield HostileText(f"{mark} and {name}", _UNITS[name], mark, "x")
    for name in ("lower-case letter", "digit", "underscore", "dot", "dash", "double quote", "backslash", "equals"):
        for mark in ("sk-", "password=", "https://a:", "eyJ", "<ide_", "git commit -", "-----BEGIN "):
            yield HostileText(f"{mark} and {name}", _UNITS[name], mark, "\x00")
    for name in ("space", "carriage return", "lower-case letter", "digit", "line end"):
        yield HostileText(f"open tag and {name}", _UNITS[name], "<system-reminder>")
        yield HostileText(f"open ide tag and {name}", _UNITS[name], "<ide_selection>")
    yield HostileText("letters and spaces at the end", "a", "", " " * 2_000 + "x")
    yield HostileText("spaced blocks", "a" + " " * 500)
    yield HostileText("lines of 500 letters", "a" * 500 + "\n")
    yield HostileText("long lines of words", "word " * 2_000 + "\n")


TEXTS = tuple(_texts())
