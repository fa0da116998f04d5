"""The shapes of secrets that give themselves away: how each provider's keys begin, and how long they are.

Data, not logic. A shape is a prefix that no ordinary word has, the letters that follow it, and how many of them there
are at least; `exact` says that there are never more. Read from the providers' own pages and from public lists of key
formats in November 2026.
"""

from __future__ import annotations

from typing import NamedTuple

WORD = "A-Za-z0-9"
URL64 = r"A-Za-z0-9_\-"
BASE64 = "A-Za-z0-9+/="
UPPER = "A-Z0-9"
DOTTED = r"A-Za-z0-9_.=\-"
HEX = "0-9a-fA-F"


class Shape(NamedTuple):
    """One kind of key."""

    kind: str
    prefixes: tuple[str, ...]
    letters: str
    least: int
    exact: bool = False
    plain: bool = False
    """True where the rest may be without a digit: the prefix alone is telling enough."""


RUNS = (
    Shape("aws key", ("AKIA", "ASIA", "ABIA", "ACCA"), UPPER, 16, exact=True, plain=True),
    Shape("aws key", ("ABSK",), BASE64, 60),
    Shape("aws key", ("bedrock-api-key-",), BASE64, 20),
    Shape("google key", ("AIza",), URL64, 35),
    Shape("google key", ("GOCSPX-",), URL64, 20, plain=True),
    Shape("anthropic key", ("sk-ant-",), URL64, 20),
    Shape("api key", ("sk-or-", "sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-lf-"), URL64, 20),
    Shape("api key", ("sk-", "sess-", "csk-", "fk-", "pk-lf-"), URL64, 24),
    Shape("api key", ("gsk_", "xai-", "pplx-", "nvapi-", "tvly-", "pcsk_", "lsv2_pt_", "lsv2_sk_", "r8_"), URL64, 20),
    Shape("api key", ("fw_", "re_", "esecret_", "jina_", "voyage-", "pa-"), URL64, 22),
    Shape("hugging face token", ("hf_", "api_org_"), WORD, 30, plain=True),
    Shape("github token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), URL64, 30, plain=True),
    Shape("github token", ("github_pat_",), URL64, 22),
    Shape(
        "gitlab token",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glptt-",
            "glcbt-",
            "glft-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glsoat-",
            "GR1348941",
        ),
        DOTTED,
        20,
        plain=True,
    ),
    Shape("slack token", ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxc-", "xoxd-"), DOTTED, 10),
    Shape("slack token", ("xapp-",), URL64, 20),
    Shape("stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sk_prod_"), BASE64 + r"_\-", 16),
    Shape("npm token", ("npm_",), WORD, 36, plain=True),
    Shape("pypi token", ("pypi-",), URL64, 50),
    Shape("registry token", ("rubygems_", "dckr_pat_", "dckr_oat_", "CLOJARS_", "cio"), URL64, 30),
    Shape("twilio key", ("SK",), HEX, 32, exact=True),
    Shape("mail key", ("key-",), HEX, 32, exact=True),
    Shape("mail key", ("xkeysib-", "xsmtpsib-"), URL64, 40),
    Shape("cloud token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX, 64),
    Shape(
        "cloud token",
        ("HRKU-", "nfp_", "sbp_", "tskey-", "fm2_", "FlyV1", "pul-", "pscale_tkn_", "pscale_oauth_"),
        URL64,
        24,
    ),
    Shape("cloud token", ("dapi",), HEX, 32),
    Shape("cloud key", ("LTAI", "AKID"), WORD, 16),
    Shape("cloud key", ("AQVN",), URL64, 32),
    Shape(
        "api token", ("lin_api_", "lin_oauth_", "ntn_", "figd_", "figo_", "ATATT3", "ATCTT3", "ATBB"), URL64 + "=", 24
    ),
    Shape("api token", ("shpat_", "shpca_", "shppa_", "shpss_", "sq0atp-", "sq0csp-", "EAAA"), URL64, 22),
    Shape(
        "api token",
        ("PMAK-", "NRAK-", "NRJS-", "glsa_", "glc_", "sntrys_", "sntryu_", "bkua_", "pat-na1-"),
        URL64 + "=+/",
        20,
    ),
    Shape("1password token", ("ops_eyJ",), BASE64, 40),
    Shape("age key", ("AGE-SECRET-KEY-1",), UPPER, 40),
    Shape("private key", ("MIIEv", "MIIEo", "MIIEp", "MIIJQ", "MIIJK", "MIICX", "MIICd", "MIIBV"), BASE64, 60),
    Shape("private key", ("MHcCAQEE", "MIGHAgEA", "MIGTAgEA", "MC4CAQAw", "b3BlbnNzaC1rZXk"), BASE64, 40),
    Shape("jwt", ("eyJ",), DOTTED, 30),
)
"""Shapes that stand at the beginning of a word. The first whose prefix fits decides."""

PLACES = (
    Shape("sendgrid key", ("SG.",), DOTTED, 40),
    Shape("google token", ("ya29.", "1//0"), DOTTED, 24),
    Shape("vault token", ("hvs.", "hvb.", "hvr."), URL64, 24),
    Shape("doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), URL64, 30),
    Shape("slack token", ("xoxe.xox",), DOTTED, 20),
    Shape("slack webhook", ("hooks.slack.com/services/", "hooks.slack.com/workflows/"), WORD + "/", 20),
    Shape("discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), URL64 + "/", 30),
    Shape("teams webhook", ("webhook.office.com/webhookb2/",), URL64 + "/@", 30),
    Shape("dropbox token", ("sl.B", "sl.u."), URL64, 60),
)
"""Shapes whose beginning is no word by itself."""
