"""Redaction: secrets in any shape are replaced, harmless values stay."""

from __future__ import annotations

import json
import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foldline import Session
from foldline.redact.patterns import OTHER_KEYS, WORD_KEYS, KeyShape
from foldline.redact.redact import clean_arguments, redact
from support.linear_time import assert_linear

BODY = "aK7xP9mQ2wE5rT8yU1iO3pA6sD4fG0hJ" * 8
"""Letters and digits in turns, as keys have them; put together here, so that no scanner takes this file for a leak."""


def key_of(shape: KeyShape, prefix: str) -> str:
    """A key of a shape."""
    body = "".join(letter for letter in BODY if re.fullmatch(f"[{shape.letters}]", letter))
    return prefix + (body * 8)[: shape.least]


KEYS = [key_of(shape, prefix) for shape in (*WORD_KEYS, *OTHER_KEYS) for prefix in shape.prefixes]

AROUND = {
    "bare": "{}",
    "sentence": "I use {} for that.",
    "env": "export SOME_NAME={}\nHOME=/root",
    "json": '{{"value": "{}", "n": 1}}',
    "escaped json": '{{\\"value\\": \\"{}\\"}}',
    "after an escaped line end": "first\\n{}\\nlast",
    "yaml": "value: {}\nother: 1",
    "url": "https://host.example/path?x=1&value={}&y=2",
    "numbered": "    12→value = '{}'\n    13→done",
    "markdown": "use `{}` here",
    "header": "X-Custom: {}\r\nAccept: */*",
    "html": "<b>{}</b>",
    "diff": "+KEY={}\n-KEY=old",
}

VALUE = "Zq8" + "vR2nL6"
LONG = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCY9x8w7v6u5t"
"""Forty letters, as the secret half of a cloud key is."""
PEM_LINES = [f"{BODY[:62]}{place:02}" for place in range(6)]


def pem(begin: bool = True, end: bool = True, lines: list[str] | None = None, kind: str = "RSA PRIVATE KEY") -> str:
    """A private key in its armour."""
    return "\n".join(
        [*([f"-----BEGIN {kind}-----"] * begin), *(lines or PEM_LINES), *([f"-----END {kind}-----"] * end)]
    )


NAMED = {
    "env": f"DB_PASSWORD={VALUE}",
    "env, a plain word": "DB_PASSWORD=swordfish",
    "env, quoted": f'AWS_SECRET_ACCESS_KEY="{LONG}"',
    "env, any _KEY": f"ENCRYPTION_KEY={LONG}",
    "env dump in one line": f"PATH=/bin GITHUB_TOKEN={LONG} HOME=/root",
    "docker -e": f"docker run -e POSTGRES_PASSWORD={VALUE} postgres",
    "json": json.dumps({"user": "me", "password": VALUE}),
    "json in json": json.dumps(json.dumps({"client_secret": VALUE})),
    "camel case": f'const config = {{ apiKey: "{VALUE}" }}',
    "python": f"password = '{VALUE}'",
    "python, typed": f'api_key: str = "{VALUE}"',
    "python dict": f"os.environ['API_KEY'] = '{VALUE}'",
    "go": f'secretKey := "{VALUE}"',
    "ruby": f":password => '{VALUE}'",
    "yaml": f"  password: {VALUE}\n  port: 5432",
    "ini": f"aws_secret_access_key = {LONG}\nregion = us-east-1",
    "toml": f'token = "{LONG}"',
    "properties": f"spring.datasource.password={VALUE}",
    "header": f"Authorization: Bearer {LONG}",
    "header in curl": f"curl -H 'Authorization: Token {LONG}' https://host.example",
    "header, basic": "Authorization: Basic " + "dXNlcjpwYTU1d29yZA==",
    "header, own": f"x-api-key: {VALUE}",
    "header in json": f'{{"Authorization": "Bearer {LONG}"}}',
    "cookie": f"Cookie: sessionid={LONG}; theme=dark",
    "flag": f"mysql --user=root --password={VALUE} -h db",
    "flag with a blank": f"tool login --token {LONG}",
    "curl user": f"curl -sS -u admin:{VALUE} https://host.example",
    "sshpass": f"sshpass -p {VALUE} ssh me@host",
    "netrc": f"machine host.example login me password {VALUE}",
    "npmrc": f"//registry.example/:_authToken={LONG}",
    "docker config": '{"auths": {"host.example": {"auth": "' + "dXNlcjpwYTU1d29yZA==" + '"}}}',
    "connection string": f"postgresql://app:{VALUE}@db.example:5432/app",
    "connection string, redis": f"redis://:{VALUE}@cache:6379/0",
    "azure connection string": f"AccountName=me;AccountKey={LONG}{LONG}==;EndpointSuffix=core",
    "git remote": f"https://x-access-token:{LONG}@github.example/me/it.git",
    "git remote, token only": f"https://{BODY[:40]}@github.example/me/it.git",
    "signed address": f"https://b.s3.example/k?X-Amz-Expires=60&X-Amz-Signature={BODY[:64].lower()}",
    "sas": f"https://a.blob.example/c?sv=2024-01-01&sig={LONG}%3D",
    "query": f"GET /v1/things?api_key={LONG}&page=2",
    "callback": f"http://localhost/cb?code={LONG}&state=1",
    "prose": f"the password is {VALUE}, do not tell",
    "prose, key": f"My API key is: {LONG}",
    "key pair in a table": f"AKIA{'IOSFODNN7' + 'ABCDEFG'},{LONG}",
    "bearer alone": f"bearer {LONG}",
    "chinese": f"密码：{VALUE}",
    "russian": f"пароль: {VALUE}",
}

WRAPPED = {
    "plain": "{}\n{}",
    "windows": "{}\r\n{}",
    "indented": "  {}\n  {}",
    "shell": "{}\\\n{}",
    "program": '"{}" +\n    "{}"',
    "escaped": "{}\\n{}",
    "quoted mail": "> {}\n> {}",
    "numbered": "   4→{}\n   5→{}",
}

HARMLESS = (
    "commit 4d9a5ca1f0b2c3d4e5f60718293a4b5c6d7e8f90",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "id: 550e8400-e29b-41d4-a716-446655440000",
    "src/auth/token_store.py:120: def get_token(self) -> str:",
    "token = tokenizer.encode(text)",
    "max_tokens=4096, input_tokens: 120394",
    "password = getpass.getpass('Password: ')",
    "password: string;",
    "const token = await getToken({ audience })",
    "api_key = os.environ['OPENAI_API_KEY']",
    "apiKey: process.env.OPENAI_API_KEY,",
    "OPENAI_API_KEY=${OPENAI_API_KEY}",
    "export TOKEN=<your-token>",
    "password=***",
    "The task-runner and the risk-assessment-framework-2024 are in disk-usage-analyzer-v2.",
    "secret_name: my-database-credentials",
    "token_count=8812, total_tokens: 99120",
    "https://host.example/path?page=2&key=name",
    "git@github.com:me/it.git and user@host.example:/srv/x1y2z3",
    "SELECT * FROM users WHERE password_hash IS NOT NULL",
    "def authenticate(user, password): ...",
    "the token is expired; the key is missing",
    "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 20,
    'integrity "sha512-' + "9Q8a+7b/cD" * 8 + '=="',
    "-----BEGIN CERTIFICATE-----",
    "sk-learn, hf_hub, npm_config_cache, ghp_ and xox are words here",
)


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
def test_every_kind_of_key_is_redacted_in_any_surroundings(around: str) -> None:
    for key in KEYS:
        text = redact(around.format(key))
        assert key[-12:] not in text, key
        assert "[redacted " in text, key


@pytest.mark.parametrize("text", NAMED.values(), ids=NAMED)
def test_a_value_behind_a_secrets_name_is_redacted(text: str) -> None:
    done = redact(text)
    assert "[redacted " in done
    for value in (VALUE, LONG, LONG[:22], LONG[-16:], "swordfish", "dXNlcjpwYTU1d29yZA", BODY[:40], BODY[:64].lower()):
        assert value not in done, done


@pytest.mark.parametrize("wrap", WRAPPED.values(), ids=WRAPPED)
def test_a_key_wrapped_over_lines_is_redacted_whole(wrap: str) -> None:
    for key in KEYS:
        for at in (len(key) // 2, len(key) - 8):
            if at < 12 or "/" in key:
                continue
            done = redact(wrap.format(key[:at], key[at:]) + "\nThe end.")
            assert key[at:] not in done, (key, done)
            assert "The end." in done
    named = redact("AWS_SECRET_ACCESS_KEY=" + wrap.format(LONG[:22], LONG[22:]))
    assert LONG[:22] not in named
    assert LONG[22:] not in named


@pytest.mark.parametrize("kind", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("form", ["lines", "escaped", "numbered", "diff", "quoted"])
def test_a_private_key_is_redacted_whole_or_truncated(kind: str, begin: bool, end: bool, form: str) -> None:
    if not begin and not end:
        return
    text = pem(begin, end, kind=kind)
    text = {
        "lines": text,
        "escaped": text.replace("\n", "\\n"),
        "numbered": "\n".join(f"  {place}→{line}" for place, line in enumerate(text.split("\n"))),
        "diff": "\n".join(f"+{line}" for line in text.split("\n")),
        "quoted": "\n".join(f"> {line}" for line in text.split("\n")),
    }[form]
    done = redact(f"Before.\n{text}\nAfter this.")
    for line in PEM_LINES:
        assert line[:40] not in done
    assert done.startswith("Before.\n")
    assert done.endswith("After this.")


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_values_stay(text: str) -> None:
    assert redact(text) == text


_PIECES = st.sampled_from(
    [
        *KEYS,
        *NAMED.values(),
        *HARMLESS,
        pem(),
        pem(end=False),
        pem(begin=False),
        *"\n \"'=:,;[]{}()\\&?/@+-_.",
        "password",
        "token=",
        "[redacted key]",
    ]
)


@given(st.lists(_PIECES | st.text(max_size=8), max_size=12).map("".join))
@example("password=[redacted password]")
def test_redacting_twice_changes_nothing_and_no_text_fails(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(st.text(st.sampled_from(string.ascii_letters + string.digits + " \n\"'=:/@-_+.\\"), max_size=200))
def test_any_text_is_fully_redacted_at_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "unit",
    [
        "password=",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "sk-",
        "eyJ",
        "://a:",
        "?token=",
        "Basic ",
        "a=\n",
        " ",
        "A",
        'token"',
        "AKIA",
        "curl -u ",
        "sk-aaaaaaaaaaaaaaaaaaaaaaaa\n",
        "Proc-Type: ",
    ],
)
def test_redaction_takes_linear_time(unit: str) -> None:
    assert_linear(lambda chars: redact(unit * (chars // len(unit))), 20_000)


KEY = "ghp_" + BODY[:36]


@pytest.mark.parametrize(
    "text",
    [
        f"\x1b[32m{KEY}\x1b[0m",
        f"word\x1b[1;31m{KEY}\x1b[0mword",
        f"\x9b32m{KEY}\x9b0m",
        f"\x1b[01;31m\x1b[Kghp_\x1b[m\x1b[K{KEY[4:]}",
        f"\x1b]8;;https://host.example\x07{KEY}\x1b]8;;\x07",
        f"{KEY[:12]}\u200b{KEY[12:]}",
        f"{KEY[:12]}\u00ad{KEY[12:30]}\u2060{KEY[30:]}",
        f"{KEY[:20]}\\\n{KEY[20:]}",
        f"\\u001b[32m{KEY}\\u001b[0m",
    ],
)
def test_unseen_characters_hide_no_key(text: str) -> None:
    done = redact(f"before {text} after")
    assert not any(KEY[at : at + 8] in done for at in range(len(KEY) - 7)), done
    assert done.startswith("before ")
    assert done.endswith(" after")


def test_colours_of_harmless_text_stay() -> None:
    text = (
        "\x1b[32m12 passed\x1b[0m in \x1b[1m3s\x1b[0m, token \x1b[36mcount\x1b[0m: 12\u200b3 \\\n and \x1b]0;title\x07"
    )
    assert redact(text) == text
    assert redact(f"{text} {KEY} {text}") == f"{text} [redacted github token] {text}"


@given(
    st.lists(
        _PIECES | st.sampled_from(["\x1b[32m", "\x1b[0m", "\x9b1m", "\u200b", "\\\n", "\x1b", "\x1b]"]), max_size=12
    )
)
def test_redacting_twice_changes_nothing_with_unseen_characters(pieces: list[str]) -> None:
    once = redact("".join(pieces))
    assert redact(once) == once


@pytest.mark.parametrize(
    "arguments",
    [
        {"user": "me", "password": "swordfish"},
        {"env": {"DB_PASSWORD": "swordfish"}},
        {"command": "| user | password |\n|---|---|\n| me | Tbl.swordfish-42 |"},
        {"command": "Das Paßwort\nlautet: x", "texts": ['mysql -u me -p"swordfish" db', "ls"]},
        {"edits": [{"name": "DB_PASSWORD", "value": "swordfish1"}]},
        {"command": ["mysql", "--password", "swordfish1", "-u", "me"]},
    ],
)
def test_a_secret_in_the_arguments_of_a_call_is_found_by_its_key_and_without_escapes(arguments: object) -> None:
    for text in (json.dumps(arguments), json.dumps(arguments, ensure_ascii=False), json.dumps(arguments, indent=2)):
        assert "swordfish" not in clean_arguments(text)
        json.loads(clean_arguments(text))


def test_arguments_without_secrets_stay_letter_for_letter() -> None:
    for text in ('{"path":  "a.py", "n": 1.50}', "*** Begin Patch", "[[[[", "[" * 100_000):
        assert clean_arguments(text) == text


@pytest.mark.parametrize("prompt", ["Please pass user_id_2 to build_request.", "the CI must pass node20-build"])
def test_a_prompt_with_the_word_pass_stays_whole_in_a_digest(prompt: str) -> None:
    session = Session(model="claude-sonnet-5")
    for text in ("Start.", prompt, "next"):
        session.add({"role": "user", "content": text}, {"role": "assistant", "content": "Done. filler " * 300})
    fold = session.fold(force=True)
    assert fold is not None
    assert fold.digest is not None
    assert prompt in fold.digest.message.text
