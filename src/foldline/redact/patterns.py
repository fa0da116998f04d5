"""Every pattern that redaction looks for. To add one, add a row to the table it belongs to.

- `WORD_KEYS`, `OTHER_KEYS`: keys that are recognised by their prefix.
- `CONTEXT_PATTERNS`: values that are recognised by the text around them (headers, flags) or a mark inside.
- `SECRET_NAMES`, `MAYBE_SECRET_NAMES`, `URL_PARAMETERS`: names whose value is a secret.
- `PLACEHOLDER_VALUE`, `TYPE_WORD`, `HARMLESS_NAME_ENDING`: values and names that look like secrets but are harmless.

Collected from the providers' own pages and from public lists of key formats in November 2026.
"""

from __future__ import annotations

import re
from typing import NamedTuple

WORD = "A-Za-z0-9"
URL64 = r"A-Za-z0-9_\-"
BASE64 = "A-Za-z0-9+/="
UPPER = "A-Z0-9"
DOTTED = r"A-Za-z0-9_.=\-"
HEX = "0-9a-fA-F"


class KeyShape(NamedTuple):
    """A kind of key: its prefixes, the characters that may follow a prefix, and the minimum number of these
    characters.
    """

    kind: str
    prefixes: tuple[str, ...]
    letters: str
    least: int
    exact: bool = False
    """Whether a key has exactly `least` characters after its prefix."""
    digitless: bool = False
    """Whether a text without any digit is also a key, because the prefix alone identifies it."""


WORD_KEYS = (
    KeyShape("aws key", ("AKIA", "ASIA", "ABIA", "ACCA"), UPPER, 16, exact=True, digitless=True),
    KeyShape("aws key", ("ABSK",), BASE64, 60),
    KeyShape("aws key", ("bedrock-api-key-",), BASE64, 20),
    KeyShape("google key", ("AIza",), URL64, 35),
    KeyShape("google key", ("GOCSPX-",), URL64, 20, digitless=True),
    KeyShape("anthropic key", ("sk-ant-",), URL64, 20),
    KeyShape("api key", ("sk-or-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-lf-"), URL64, 20),
    KeyShape("api key", ("sk-", "sess-", "csk-", "fk-", "pk-lf-"), URL64, 24),
    KeyShape("api key", ("gsk_", "xai-", "pplx-", "nvapi-", "tvly-"), URL64, 20),
    KeyShape("api key", ("pcsk_", "lsv2_pt_", "lsv2_sk_", "r8_"), URL64, 20),
    KeyShape("api key", ("fw_", "re_", "esecret_", "jina_", "voyage-", "pa-"), URL64, 22),
    KeyShape("hugging face token", ("hf_", "api_org_"), WORD, 30, digitless=True),
    KeyShape("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), URL64, 30, digitless=True),
    KeyShape("github token", ("github_pat_",), URL64, 22),
    KeyShape("gitlab token", ("glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glft-"), DOTTED, 20, digitless=True),
    KeyShape("gitlab token", ("glimt-", "glagent-", "gloas-", "glsoat-", "GR1348941"), DOTTED, 20, digitless=True),
    KeyShape("slack token", ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-"), DOTTED, 10),
    KeyShape("slack token", ("xoxr-", "xoxs-", "xoxc-", "xoxd-"), DOTTED, 10),
    KeyShape("slack token", ("xapp-",), URL64, 20),
    KeyShape("stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sk_prod_"), BASE64 + r"_\-", 16),
    KeyShape("npm token", ("npm_",), WORD, 36, digitless=True),
    KeyShape("pypi token", ("pypi-",), URL64, 50),
    KeyShape("registry token", ("rubygems_", "dckr_pat_", "dckr_oat_", "CLOJARS_", "cio"), URL64, 30),
    KeyShape("twilio key", ("SK",), HEX, 32, exact=True),
    KeyShape("mail key", ("key-",), HEX, 32, exact=True),
    KeyShape("mail key", ("xkeysib-", "xsmtpsib-"), URL64, 40),
    KeyShape("cloud token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX, 64),
    KeyShape("cloud token", ("HRKU-", "nfp_", "sbp_", "tskey-", "fm2_", "FlyV1", "pul-"), URL64, 24),
    KeyShape("cloud token", ("pscale_tkn_", "pscale_oauth_"), URL64, 24),
    KeyShape("cloud token", ("dapi",), HEX, 32),
    KeyShape("cloud key", ("LTAI", "AKID"), WORD, 16),
    KeyShape("cloud key", ("AQVN",), URL64, 32),
    KeyShape("api token", ("lin_api_", "lin_oauth_", "ntn_", "figd_", "figo_"), URL64 + "=", 24),
    KeyShape("api token", ("ATATT3", "ATCTT3", "ATBB"), URL64 + "=", 24),
    KeyShape("api token", ("shpat_", "shpca_", "shppa_", "shpss_", "sq0atp-", "sq0csp-", "EAAA"), URL64, 22),
    KeyShape("api token", ("PMAK-", "NRAK-", "NRJS-", "glsa_", "glc_"), URL64 + "=+/", 20),
    KeyShape("api token", ("sntrys_", "sntryu_", "bkua_", "pat-na1-"), URL64 + "=+/", 20),
    KeyShape("1password token", ("ops_eyJ",), BASE64, 40),
    KeyShape("age key", ("AGE-SECRET-KEY-1",), UPPER, 40),
    KeyShape("private key", ("MIIEv", "MIIEo", "MIIEp", "MIIJQ", "MIIJK", "MIICX", "MIICd", "MIIBV"), BASE64, 60),
    KeyShape("private key", ("MHcCAQEE", "MIGHAgEA", "MIGTAgEA", "MC4CAQAw", "b3BlbnNzaC1rZXk"), BASE64, 40),
    KeyShape("jwt", ("eyJ",), DOTTED, 30),
)
"""Keys that begin with one of these prefixes at the start of a word. The first row whose prefix matches is used."""

OTHER_KEYS = (
    KeyShape("sendgrid key", ("SG.",), DOTTED, 40),
    KeyShape("google token", ("ya29.", "1//0"), DOTTED, 24),
    KeyShape("vault token", ("hvs.", "hvb.", "hvr."), URL64, 24),
    KeyShape("doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), URL64, 30),
    KeyShape("slack token", ("xoxe.xox",), DOTTED, 20),
    KeyShape("slack webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), WORD + "/", 20),
    KeyShape("discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), URL64 + "/", 30),
    KeyShape("teams webhook", ("webhook.office.com/webhookb2/",), URL64 + "/@", 30),
    KeyShape("dropbox token", ("sl.B", "sl.u."), URL64, 60),
)
"""Keys whose prefix contains a dot or a slash. For webhooks, the address itself is the secret."""


class ContextPattern(NamedTuple):
    """A value that is recognised by the text around it. Group 1 of the pattern is the value."""

    kind: str
    mark: str
    """A fixed string that every match contains. A text without it is not searched."""
    pattern: re.Pattern[str]


CONTEXT_PATTERNS = (
    ContextPattern("auth header", "earer", re.compile(r"\b[Bb]earer[ \t]+([A-Za-z0-9._~+/=-]{16,})")),
    ContextPattern("auth header", "asic ", re.compile(r"\b[Bb]asic[ \t]+([A-Za-z0-9+/]{12,}={0,2})(?![\w ])")),
    ContextPattern(
        "cookie",
        "ookie",
        re.compile(r"[Cc]ookie\\{0,3}[\"']?[ \t]*[:=][ \t]*\\{0,3}[\"']?([^\s=;\"'\\]{1,80}=[^\r\n\"'\\]{8,})"),
    ),
    ContextPattern("password", "login ", re.compile(r"login[ \t]+\S{1,80}\s+password[ \t]+(\S{3,200})")),
    ContextPattern(
        "password",
        "curl ",
        re.compile(
            r"curl\b(?:(?!curl\b)[^\n]){0,300}?[ \t](?:-u|--user)[ \t=]*[\"']?[^\s:\"']{1,80}:([^\s\"']{3,200})"
        ),
    ),
    ContextPattern("password", "sshpass", re.compile(r"sshpass[ \t]+-p[ \t]*[\"']?([^\s\"']{3,200})")),
    ContextPattern("telegram token", ":AA", re.compile(r"(?<!\d)(\d{8,10}:AA[A-Za-z0-9_-]{32,34})(?![\w-])")),
    ContextPattern("azure secret", "Q~", re.compile(r"(?<![\w~.-])([A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})")),
    ContextPattern("azure key", "JQQJ9", re.compile(r"(?<![A-Za-z0-9])([A-Za-z0-9]{40,60}JQQJ9[A-Za-z0-9]{5,40})")),
    ContextPattern(
        "terraform token", ".atlasv1.", re.compile(r"(?<!\w)([A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})")
    ),
    ContextPattern("mail key", "-us", re.compile(r"(?<![0-9a-f])([0-9a-f]{32}-us\d{1,2})(?!\w)")),
    ContextPattern("auth", '"auth', re.compile(r"\"auth\\?\"[ \t]*:[ \t]*\\?\"([A-Za-z0-9+/]{8,}={0,2})\\?\"")),
)

SECRET_NAMES = (
    *("passw", "passphrase", "pwd", "secret", "apikey", "api_key", "api-key", "api key", "access_key", "accesskey"),
    *("private_key", "privatekey", "account_key", "accountkey", "credential"),
    *("пароль", "密码", "パスワード", "contraseña"),
)
"""Names whose value is a secret."""
MAYBE_SECRET_NAMES = ("token", "_key", "-key", "authorization", "_auth", "jwt")
"""Names whose value is a secret if it looks random."""
URL_PARAMETERS = re.compile(
    r"[?&;](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|"
    r"(?:[a-z_-]{0,20}(?:token|secret|password|passwd|pwd|api_?-?key|apikey|signature|auth|session|credential))|"
    r"sig|key|code|pass|jwt|assertion)=([^\s&#\"'<>\\`;,)\]}]{6,})",
    re.IGNORECASE,
)
"""URL parameters whose value is a secret."""
HARMLESS_NAME_ENDING = re.compile(
    r"(?:[_.-]?(?:ids?|names?|files?|paths?|url|uri|type|len|length|count|size|field|column|ref|env|var|limit|"
    r"manager|provider|service|store|helper|utils?|policy|version|format|prefix|pattern|regex|label|hint|error|"
    r"endpoint|header|method|mode|class|enum|at|expir\w*|ttl|usage|budget|status|state|valid\w*|index|page|next|"
    r"kind|scope|scopes|source|input|output|s|ized|izer|ize|ation|or|ors|ority|enticat\w*|oriz\w*))$",
    re.IGNORECASE,
)
"""If a name of a secret has one of these endings, its value is harmless. Example: `token_count`."""
TYPE_WORD = re.compile(
    r"(?:str(?:ing)?|int(?:eger)?|number|bool(?:ean)?|any|none|null|nil|true|false|undefined|object|bytes|secret|"
    r"password|passwd|token|text|required|optional|hidden|redacted|masked|env|vault|unset|empty|missing|invalid|"
    r"changed|wrong|incorrect|correct|public|private|default|disabled|basic|bearer|oauth2?|api_?key)[.,;:]?",
    re.IGNORECASE,
)
PLACEHOLDER_VALUE = re.compile(
    r"https?://|\$|%\(?\w+\)?[s%]|\{|<|\*{3}|x{4}|X{4}|\.{3}|…|your[_-]|YOUR[_-]|example|placeholder|process\.env|os\.environ|"
    r".{0,12}\.\.\.$|.{0,8}xxx+$|env\.|secrets\.|vars\.|\[?redacted|(.)\1{5,}$|\[?REDACTED|(?:change|replace)[_-]?me|@|#\{"
)
