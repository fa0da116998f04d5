"""The keys and names that redaction looks for. To add a key or a name, add a row to its table.

Values that are recognised by the text around them are in `context_patterns.py`.

- `WORD_KEYS`, `OTHER_KEYS`: keys that are recognised by their prefix.
- `SECRET_NAMES`, `WHOLE_SECRET_NAMES`, `MAYBE_SECRET_NAMES`, `URL_PARAMETERS`: names whose value is a secret.
- `PLACEHOLDER_VALUE`, `TYPE_WORD`, `TECHNICAL_WORD`, `HARMLESS_NAME_ENDING`: values and names that look like secrets
  but are harmless.

The rows were collected from the providers' own pages and from public lists of key formats in November 2026.
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


class Hit(NamedTuple):
    """A secret in a text."""

    start: int
    end: int
    kind: str


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
    KeyShape("registry token", ("rubygems_", "dckr_pat_", "dckr_oat_", "CLOJARS_", "cio"), URL64, 26),
    KeyShape("registry token", ("AKCp", "oy2", "cmVmdGtu"), WORD, 40),
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
    KeyShape("api token", ("pat-eu1-", "CCIPAT_", "CFPAT-", "sgp_", "squ_", "sqp_", "sqa_", "tfp_", "pnu_"), URL64, 24),
    KeyShape("api token", ("sb_secret_", "rnd_", "napi_", "ddp_", "mdb_sa_sk_", "essu_", "phx_"), URL64, 20),
    KeyShape("api token", ("secret_", "rzp_live_", "FLWSECK_", "shippo_live_", "duffel_live_", "EZAK"), WORD, 24),
    KeyShape("api token", ("sdk-", "api-", "access-production-", "access-sandbox-", "secret-live-"), HEX + r"\-", 36),
    KeyShape("api token", ("wandb_v1_", "sk_", "rdme_", "fo1_", "y0_", "cfut_"), WORD, 32),
    KeyShape(
        "api token", ("sandbox-sq0csb-", "sandbox-sq0atb-", "sq0csb-", "duffel_test_", "fio-u-", "tk-us-"), URL64, 30
    ),
    KeyShape("api token", ("ico-", "apify_api_", "vcp_", "figp_", "figu_", "tgp_v1_", "e2b_", "phs_"), URL64, 32),
    KeyShape("api token", ("fc-", "live_", "sgamp_", "slk_", "rootly_", "cs_"), HEX, 32),
    KeyShape(
        "api token", ("EZTK", "shippo_test_", "FLWSECK-", "FLWSECK_TEST-", "pscale_pw_", "ak_live_", "vck_"), URL64, 20
    ),
    KeyShape("api token", ("flb_live_", "ramp_sec_", "sqco_", "bb_pr_", "bb_ma_", "cfat_", "cfk_", "ddw_"), URL64, 20),
    KeyShape("api token", ("glffct-", "NRII-", "NRIQ-", "NRBR-", "BBDC-", "p8e-", "s-s4t2ud-", "s-s4t2af-"), URL64, 19),
    KeyShape("api token", ("API-",), UPPER, 26, exact=True),
    KeyShape("api token", ("BSA",), URL64, 27, exact=True),
    KeyShape("api token", ("md-",), URL64, 22, exact=True),
    KeyShape("api token", ("K00",), WORD, 28, exact=True),
    KeyShape("swarm token", ("SWMTKN-1-",), URL64, 40),
    KeyShape("aws token", ("FwoGZXIvYXdz", "IQoJb3JpZ2lu", "FQoGZXIvYXdz"), BASE64, 40),
    KeyShape("wallet key", ("xprv", "yprv", "zprv"), WORD, 90),
    KeyShape("wallet key", ("nsec1",), "a-z0-9", 50),
    KeyShape("api token", ("EAAB", "EAAC", "EAAD", "EAAE", "EAAF", "EAAG", "EAAH", "EAAI", "EAAJ", "EAAK"), WORD, 60),
    KeyShape("1password token", ("ops_eyJ",), BASE64, 40),
    KeyShape("age key", ("AGE-SECRET-KEY-1",), UPPER, 40),
    KeyShape("private key", ("MIIEv", "MIIEo", "MIIEp", "MIIJQ", "MIIJK", "MIICX", "MIICd", "MIIBV"), BASE64, 60),
    KeyShape("private key", ("MHcCAQEE", "MIGHAgEA", "MIGTAgEA", "MC4CAQAw", "b3BlbnNzaC1rZXk"), BASE64, 40),
    KeyShape("private key", ("LS0tLS1CRUdJTiBQUklWQVRF", "LS0tLS1CRUdJTiBSU0EgUFJJVkFUR"), BASE64, 40),
    KeyShape("private key", ("LS0tLS1CRUdJTiBPUEVOU1NI", "LS0tLS1CRUdJTiBFQyBQUklW"), BASE64, 40),
    KeyShape("private key", ("LS0tLS1CRUdJTiBEU0EgUFJJ", "LS0tLS1CRUdJTiBFTkNS"), BASE64, 40),
    KeyShape("jwt", ("eyJ",), DOTTED, 30),
)
"""Kinds of keys that are recognised by a prefix at the start of a word. If several rows match, the
first one is used.
"""

OTHER_KEYS = (
    KeyShape("openshift token", ("sha256~",), URL64, 40),
    KeyShape("cloudflare key", ("v1.0-",), HEX + r"\-", 100),
    KeyShape("harness token", ("pat.", "sat."), DOTTED, 60),
    KeyShape("sendgrid key", ("SG.",), DOTTED, 40),
    KeyShape("google token", ("ya29.", "1//0"), DOTTED, 24),
    KeyShape("vault token", ("hvs.", "hvb.", "hvr."), URL64, 24),
    KeyShape("doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), URL64, 30),
    KeyShape("slack token", ("xoxe.xox",), DOTTED, 20),
    KeyShape(
        "slack webhook",
        ("hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"),
        WORD + "/",
        20,
    ),
    KeyShape("discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), URL64 + "/", 30),
    KeyShape("teams webhook", ("webhook.office.com/webhookb2/",), URL64 + "/@", 30),
    KeyShape("mapbox token", ("sk.eyJ",), DOTTED, 40),
    KeyShape("dynatrace token", ("dt0c01.", "dt0s01.", "dt0s16."), DOTTED, 40),
    KeyShape("zapier webhook", ("hooks.zapier.com/hooks/catch/",), WORD + "/", 12),
    KeyShape("webhook", ("maker.ifttt.com/trigger/",), URL64 + "/", 24),
    KeyShape(
        "webhook", ("hook.eu1.make.com/", "hook.eu2.make.com/", "hook.us1.make.com/", "hook.us2.make.com/"), WORD, 20
    ),
    KeyShape("log token", ("logs-01.loggly.com/inputs/", "logs-01.loggly.com/bulk/"), HEX + r"\-", 30),
    KeyShape("conda token", ("conda.anaconda.org/t/",), URL64, 20),
    KeyShape("paypal token", ("access_token$production$", "access_token$sandbox$"), WORD + "$", 30),
    KeyShape("dropbox token", ("sl.B", "sl.u."), URL64, 60),
)
"""Keys whose prefix contains a dot or a slash. For webhooks, the address itself is the secret."""


SECRET_NAMES = (
    *("passw", "passphrase", "pass phrase", "pwd", "secret", "apikey", "api_key", "api-key", "api key", "access_key"),
    *("accesskey", "access key", "private_key", "privatekey", "private key", "account_key", "accountkey"),
    *("account key", "credential", "passcode", "storepass", "keypass", "presharedkey", "pre-shared-key"),
    *("preshared_key", "pre-shared key", "preshared key", "unseal key", "recovery key", "master key", "masterkey"),
    *("master_key", "encryption key", "signing key", "authkey", "auth_key", "auth key", "license key", "root token"),
    *(
        "encryptionkey",
        "sharedkey",
        "servicekey",
        "adminkey",
        "hmackey",
        "sessionkey",
        "appkey",
        "app_keys",
        "authident",
    ),
    *("product key", "activation key", "licence key", "network key", "wifi key", "wpa2 key", "wpa key"),
    *("kennwort", "mot de passe", "contraseña", "contrasena", "senha", "hasło", "haslo", "wachtwoord", "lösenord"),
    *("adgangskode", "salasana", "jelszó", "heslo", "şifre", "parolă", "parola", "lozinka", "mật khẩu", "kata sandi"),
    *(
        "пароль",
        "密码",
        "密碼",
        "口令",
        "パスワード",
        "暗証番号",
        "비밀번호",
        "암호",
        "كلمة المرور",
        "סיסמה",
        "κωδικός",
    ),
)
"""Names whose value is a secret."""
WHOLE_SECRET_NAMES = ("pass", "psk", "pw", "mdp", "pswd", "psw", "clave")
"""Names whose value is a secret. They count only as separate words, so that `bypass` is not taken for `pass`."""
OWNERS = (
    *("db", "user", "usr", "ftp", "smtp", "imap", "root", "admin", "mail", "sudo", "auth", "sql", "bind", "become"),
    *("vnc", "wifi", "redis", "login", "ldap", "proxy", "rpc", "zip", "pdf", "ssh", "rcon", "svc"),
)
"""Words that may directly precede `pass` or `pw`, as in `bindpw`."""
ACCOUNT_WORDS = (
    *(
        "login",
        "log in",
        "creds",
        "cred",
        "vault",
        "wifi",
        "wi-fi",
        "ssid",
        "vpn",
        "ssh",
        "ftp",
        "sftp",
        "rdp",
        "kinit",
    ),
    *("luks", "root", "admin", "administrator", "sudo", "unlock", "telnet", "imap", "smtp"),
)
"""A word that looks like a password counts as a password if one of these words is near it."""
MAYBE_SECRET_NAMES = (
    *("token", "key", "authorization", "_auth", "jwt", "_session", "_bearer", "sessid", "sessionid"),
    *(
        "webhook",
        "_dsn",
        "_salt",
        "_seed",
        "art-api",
        "_hmac",
        "api_hash",
        "crumb",
        "verifier",
        "honeycomb-team",
        "samlresponse",
        "logged_in",
    ),
)
"""Names whose value is a secret if it looks random."""
WHOLE_MAYBE_NAMES = ("pat", "auth")
"""Names whose value is a secret if it looks random. They count only as separate words."""
NAMES_OF_IDS = frozenset(("sessionid", "_session"))
"""Names whose value is harmless if it is a UUID."""
URL_PARAMETERS = re.compile(
    r"[?&;](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|"
    r"(?:[a-z_-]{0,20}(?:token|secret|password|passwd|pwd|api_?-?key|apikey|signature|auth|session|credential))|"
    r"sig|key|code|pass|jwt|assertion|appid|t|tk|ticket|otp|invite|confirmation)=([^\s&#\"'<>\\`;,)\]}]{6,})",
    re.IGNORECASE,
)
"""URL parameters whose value is a secret."""
HARMLESS_NAME_ENDING = re.compile(
    r"(?:ord|ords|ort|d|s|key)?(?:[_.-][a-z0-9]{1,20}){0,3}[_.-]?(?:ids?|names?|files?|paths?|dir|url|uri|type|len|length|count|size|field|column|ref|"
    r"env|var|limit|arn|manager|provider|service|store|helper|utils?|mgr\w*|policy|version|format|prefix|pattern|regex|label|"
    r"hint|error|short|weak|mismatch|endpoint|header|method|mode|class|enum|at|expir\w*|ttl|usage|budget|status|state|valid\w*|index|page|"
    r"next|kind|scopes?|source|input|output|placeholder|message|text|title|description|changed\w*|reset\w*|required|"
    r"enabled|algorithm|alg|strength|min|max|rotation\w*|age|days|minutes|seconds|date|year|group|form|fingerprint|"
    r"thumbprint|cert-hash|toggle|owner|user|username|email|host|port|parser|handler|factory|repository|component|controller|module|"
    r"schema|table|dto|request|response|event|action|button|icon|s|ized|izer|ize|ation|or|ors|ority|enticat\w*|oriz\w*|"
    r"ary|aries)$",
    re.IGNORECASE,
)
"""If a name of a secret has one of these endings, its value is harmless. Example: `token_count`."""
TYPE_WORD = re.compile(
    r"(?:str(?:ing)?|int(?:eger)?|number|bool(?:ean)?|any|none|null|nil|true|false|undefined|object|bytes|secret|"
    r"pass|password|passwd|token|text|required|optional|hidden|redacted|masked|env|vault|unset|empty|missing|invalid|"
    r"changed|wrong|incorrect|correct|public|private|default|disabled|todo|fixme|tbd|changeme|sample|foobar|1password|"
    r"(?:test|my|dummy|some)[_-]?(?:ing|pass(?:word)?|token|secret|key|value)?|basic|bearer|oauth2?|api_?key)[.,;:]?",
    re.IGNORECASE,
)
PLACEHOLDER_VALUE = re.compile(
    r"https?://|op://|vault:|ssm:|arn:|sm://|keyring:|file://|\$|%\(?\w+\)?[s%]|\{|<|\W?\*{3}|x{4}|X{4}|\.{3}|…|your[_-]|YOUR[_-]|example|placeholder|process\.env|os\.environ|"
    r".{0,12}\.\.\.$|.{0,8}xxx+$|env\.|secrets\.|vars\.|\[?redacted|(.)\1{5,}$|\[?REDACTED|(?:change|replace)[_-]?me|(?:CHANGE|REPLACE)[_-]?ME|#(?:[0-9a-fA-F]{3}){1,2}$|(?i:insert|put|enter|add|paste)[_-]|[\w-]{1,40}[_-](?:here|HERE)$|[A-Z][a-z]+(?:To|From)?-[A-Z][A-Za-z]+$|-[A-Z][A-Za-z]+$|@|#\{|YOUR|Your|\.\*|!(?:vault|Ref|Sub|ImportValue|GetAtt|reference|secret|env)\b|\(sensitive|\(known|gh[pousr]_(?:x{6}|\*{6})|\*+$|-+$|_+$|fake|dummy|test-only"
)
"""Values that are placeholders for a real value."""
TECHNICAL_WORD = re.compile(
    r"(?:argon2\w*|sha-?\d+\w*|md5\w*|base-?(?:16|32|58|64)\S*|utf-?\d\w*|x\.?509\w*|ed25519\w*|oauth-?2\w*|bcrypt\w*|"
    r"pbkdf2\w*|[hrep]s(?:256|384|512)|aes\S*|rsa-?\d+|k8s|http/?\d\S*|ipv[46]|python\d\S*|node\d*|v?\d+(?:\.\d+)+\S*|"
    r"(?-i:[A-Z]{2,8}-\d{1,6})|#\d+|\d+[A-Za-z]{0,2}|\d+-[a-z]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[\w.:>?-]+\(.*|\w+=\w*|--?[a-z][\w-]*|"
    r"[\w./-]+\.(?:py|js|ts|go|rs|java|md|json|ya?ml|toml|txt|pem|key|conf|cfg|ini|sh|env|html?|dev|com|org|net|io)\b\S*)"
    r"[.,;:!?)]*$",
    re.IGNORECASE,
)
"""Words with digits or symbols that are not passwords: algorithms, versions, tickets, addresses, file names."""
MESSAGE_WORDS = frozenset(
    (
        *(
            "must",
            "should",
            "your",
            "enter",
            "please",
            "password",
            "passwords",
            "passphrase",
            "characters",
            "character",
        ),
        *("invalid", "required", "least", "cannot", "reset", "forgot", "token", "secret", "key", "user", "username"),
        *("email", "login", "confirm", "new", "current", "incorrect", "wrong", "match", "field", "empty", "missing"),
        *("error", "failed", "is", "are", "not", "for", "be", "at", "shared", "used", "stored", "file", "set", "too"),
    )
)
"""Words that occur in a message about a secret. A text that contains one of them is no passphrase."""
