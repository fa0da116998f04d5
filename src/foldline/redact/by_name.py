"""Secrets that their name gives away: in assignments, JSON, flags, headers, prose and addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from foldline.redact.hits import MARK, Hit, end_of, looks_random, placeholder, wrapped

# Addresses with a password or a signature in them

_USER = re.compile(r"://([^\s/?#@:\"'<>\\`]{0,200})(?::([^\s/?#@\"'<>\\`]{1,500}))?@(?=[\w\[-])")
_QUERY = re.compile(
    r"[?&;](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|"
    r"(?:[a-z_-]{0,20}(?:token|secret|password|passwd|pwd|api_?-?key|apikey|signature|auth|session|credential))|"
    r"sig|key|code|pass|jwt|assertion)=([^\s&#\"'<>\\`;,)\]}]{6,})",
    re.IGNORECASE,
)


def urls(text: str) -> Iterator[Hit]:
    """Passwords, tokens and signatures in addresses."""
    for found in _USER.finditer(text):
        if found[2] and not placeholder(found[2]):
            yield Hit(*found.span(2), "url password")
        elif not found[2] and len(found[1]) >= 16 and looks_random(found[1]):
            yield Hit(*found.span(1), "url token")
    if "=" not in text:
        return
    for found in _QUERY.finditer(text):
        value = found[1]
        if not placeholder(value) and (looks_random(value) or _long(value)):
            yield Hit(*found.span(1), "url token")


def _long(value: str) -> bool:
    return len(value) >= 20 and any(map(str.isdigit, value))


# Values that a name gives away

_NAMES = {
    "passw": True,
    "passphrase": True,
    "pwd": True,
    "secret": True,
    "apikey": True,
    "api_key": True,
    "api-key": True,
    "api key": True,
    "access_key": True,
    "accesskey": True,
    "private_key": True,
    "privatekey": True,
    "account_key": True,
    "accountkey": True,
    "credential": True,
    "пароль": True,
    "密码": True,
    "パスワード": True,
    "contraseña": True,
    "token": False,
    "_key": False,
    "-key": False,
    "authorization": False,
    "_auth": False,
    "jwt": False,
}
"""Names whose value is a secret; False where it is one only when it looks like one."""
_VALUE = re.compile(
    r"""(?P<rest>[\w.-]{0,40}?)\\{0,3}(?P<shut>["'`]?)\]?[ \t]{0,8}"""
    r"""(?P<sign>(?::[ \t]{0,4}[\w\[\]| .]{1,30})?(?:=>|:=|==?)|[:：]|(?<=[\s\w"'`])(?:is|was)(?=[\s:])|(?=[ \t]))"""
    r"""[ \t]{0,8}:?[ \t]{0,4}(?:\\{0,3}(?P<quote>["'`])|[bfr](?P<quote2>["'])|)"""
)
_QUOTED = re.compile(r"""[^"'`\r\n\\]{1,160}""")
_BARE = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]{1,160}""")
_HARMLESS = re.compile(
    r"(?:[_.-]?(?:ids?|names?|files?|paths?|url|uri|type|len|length|count|size|field|column|ref|env|var|limit|"
    r"manager|provider|service|store|helper|utils?|policy|version|format|prefix|pattern|regex|label|hint|error|"
    r"endpoint|header|method|mode|class|enum|at|expir\w*|ttl|usage|budget|status|state|valid\w*|index|page|next|"
    r"kind|scope|scopes|source|input|output|s|ized|izer|ize|ation|or|ors|ority|enticat\w*|oriz\w*))$",
    re.IGNORECASE,
)
_FLAG = re.compile(r"--?[\w-]{0,30}$")
_SCHEME = re.compile(
    r"(?:Bearer|Basic|Token|ApiKey|Api-Key|Digest|Negotiate|AWS4-HMAC-SHA256|Bot)[ \t]+", re.IGNORECASE
)


def named(text: str) -> Iterator[Hit]:
    """Values behind a name that says they are secret."""
    lower = text.lower()
    if len(lower) != len(text):  # a letter that grows when it is made small would shift every place
        lower = "".join(letter.lower() if letter.isascii() else letter for letter in text)
    for name, strong in _NAMES.items():
        at, until = lower.find(name), 0
        while at >= 0:
            if at >= until:
                hit = _value(text, at, at + len(name), name, strong=strong)
                if hit is not None:
                    until = hit.end
                    yield hit
            at = lower.find(name, at + len(name))


def _value(text: str, at: int, end: int, name: str, *, strong: bool) -> Hit | None:
    """The secret that stands behind a name, if one does."""
    found = _VALUE.match(text, end)
    if found is None or _HARMLESS.match(found["rest"]) or found["rest"][:1].isdigit():
        return None
    start, quote = found.end(), bool(found["quote"] or found["quote2"])
    scheme = _SCHEME.match(text, start)
    if scheme:
        start, strong = scheme.end(), True
    elif not found["sign"] and not _FLAG.search(text, max(0, at - 32), at):
        return None
    value = (_QUOTED if quote and not scheme else _BARE).match(text, start)
    if value is None or value[0].startswith(MARK[1:]) or text.startswith(MARK, start):
        return None
    if value[0].isspace() or placeholder(value[0]) or " " in value[0].strip():
        return None
    env = text[at:end].isupper() and found["sign"] == "=" and not text[start - 1].isspace()
    prose = found["sign"] in ("is", "was")
    told = prose and strong and looks_random(value[0])
    after = text[value.end() : value.end() + 1]
    if not told and not _is_secret(value[0], after, strong=strong and not prose, whole=quote or env):
        return None
    last = end_of(_QUOTED_ALL if quote and not scheme else _BARE_ALL, text, value.start())
    return Hit(value.start(), wrapped(text, last), _kind(name))


_QUOTED_ALL = re.compile(r"""[^"'`\r\n\\]*""")
_BARE_ALL = re.compile(r"""[^\s"'`,;&<>\\(){}\[\]|]*""")


def _kind(name: str) -> str:
    for part, kind in (("pass", "password"), ("pwd", "password"), ("secret", "secret"), ("token", "token")):
        if part in name:
            return kind
    return "key" if "key" in name else "credential"


def _is_secret(said: str, after: str, *, strong: bool, whole: bool) -> bool:
    """Whether a value is a secret; `whole` where it stands in quotes or in a shell's assignment."""
    if not whole and (after in ("(", "[", "{") or (_REFERENCE.fullmatch(said) and not looks_random(said))):
        return False
    if whole and after == "(":
        return False
    if not strong:
        return len(said) >= 16 and looks_random(said)
    return len(said) >= 4 if whole else len(said) >= 6 and any(not letter.isalpha() for letter in said)


_REFERENCE = re.compile(r"[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[.:?!]?")
