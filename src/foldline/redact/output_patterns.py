"""Patterns for secrets in prose and in the output of programs, and for keys with a fixed string inside.

To add a pattern, add a row. Each pattern takes linear time, as in `context_patterns.py`.
"""

from __future__ import annotations

from foldline.redact.pattern_rows import row

_ACCOUNT = r"(?i:ssid|user(?:name)?|login|account|wi-?fi|network)\b"
_LABEL = r"(?i:password|passwd|passphrase|pass|pwd|pw)"

OUTPUTS = (
    row(
        "secret",
        "phrase|nemonic|NEMONIC|PHRASE|eed words|seed:|seed=",
        r"(?i:(?:recovery|seed|backup|secret|wallet)[ _-]?(?:phrase|words)|mnemonic|\bseed(?=[:=]))[\w \t()\"'-]{0,40}[:=]?\s{0,8}[\"']?(?P<v>(?:(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8}[ ,\n\t]{1,6}){11,23}(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8})",
    ),
    row(
        "secret",
        "ode",
        r"(?=[rbseoRBSEO])(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[^\n]{0,60}\n+(?P<v>(?:(?=[^\n]{0,60}\d)[ \t>*•-]{0,8}(?:\d{1,2}[.)][ \t]+)?[A-Za-z0-9]{4,10}(?:[ -][A-Za-z0-9]{3,10}){0,4}[ \t]{0,8}(?:\n|$)){1,20})",
        words="recovery|backup|scratch|emergency|one-time",
        probe=r"[ _-][Cc]ode",
    ),
    row(
        "secret",
        "ode",
        r"(?=[rbseoRBSEO])(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[ \t]{0,4}[\"']?[:=][ \t]*\[?(?P<v>[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?(?:[ ,]{1,3}[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?){0,20})",
        words="recovery|backup|scratch|emergency|one-time",
        probe=r"[ _-][Cc]odes?[ \t]{0,4}[\"']?[:=]",
    ),
    row(
        "secret",
        "ode",
        r"(?=[rbseoRBSEO])(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[ \t](?:are|is|were|was)[ \t:]{1,4}"
        r"(?P<v>(?=[A-Za-z0-9]{4,10}-[A-Za-z0-9]{4,10}\b)[A-Za-z]{0,9}\d[A-Za-z0-9]{0,9}-[A-Za-z]{0,9}\d[A-Za-z0-9]{0,9}"
        r"(?:[ ,]{1,3}(?:and[ \t])?(?=[A-Za-z0-9]{4,10}-[A-Za-z0-9]{4,10}\b)[A-Za-z]{0,9}\d[A-Za-z0-9]{0,9}-[A-Za-z]{0,9}\d[A-Za-z0-9]{0,9}){0,20})",
        words="recovery|backup|scratch|emergency|one-time",
        probe=r"[ _-][Cc]odes?[ \t](?:are|is|were|was)[ \t:]",
    ),
    row(
        "secret",
        "KEY to |TOKEN to |SECRET to |KEY as |TOKEN as |SECRET as ",
        r"(?:KEY|TOKEN|SECRET) (?:to|as) [\"'`]?(?P<v>[^\s\"'`]{16,200})",
        "random",
    ),
    row(
        "password",
        "password |passphrase |passcode ",
        r"\b(?=[uwteUWTE])(?i:use|using|with|try|enter|type)[ \t]+(?:(?:the|this|my|our)[ \t]+)?pass(?:word|phrase|code)[ \t]+(?P<v>[^\s\"'`]{6,100})",
        "typed",
        probe=r"[eghyr][ \t]+(?:(?:the|this|my|our)[ \t]+)?pass(?:word|phrase|code)[ \t]",
    ),
    row(
        "pin",
        "PIN|PUK|CVV|CVC|OTP",
        r"\b(?:PIN|PUK\d?|OTP|CVV|CVC)\b[^\n:=]{0,40}(?:[:=]|\bis\b)[ \t]*(?P<v>\d{4,12})(?!\w)",
    ),
    row(
        "pin",
        "code|combination",
        r"(?=[dgaslDGASLeE])(?i:door|gate|alarm|safe|lock|garage|entry)[ -]?(?:code|pin|combination)\b[^\n:=\d]{0,20}(?:[:=]|\bis\b)[ \t]*(?P<v>[\d*#-]{4,12})",
        words="door|gate|alarm|safe|lock|garage|entry",
    ),
    row(
        "pin",
        "code",
        r"(?=[vsol2maVSOLMA])(?i:verification|security|one-time|login|2fa|mfa|sms|auth(?:entication)?)[ -]code(?:[^\n:=]{0,30}[:=]|[^\n:=]{0,30}\bis\b)[ \t]*(?P<v>(?:G-)?\d{3}[ -]?\d{3,5})(?!\w)",
        probe=r"code[^\n:=]{0,30}(?:[:=]|\bis\b)[ \t]*(?:G-)?\d{3}",
    ),
    row(
        "credential",
        "creds|redential|ogin|l/p|u/p|L/p|U/p",
        r"\b(?=[CcLlUu])(?i:creds?|credentials?|logins?|l/p|u/p)\b[^\n:=→]{0,50}?(?:[:=→]|->|\b(?:is|are)\b)[ \t]*[`\"'(]?[\w.@+-]{2,40}(?:[ \t]{0,2}[:/|,][ \t]{0,2}|[ \t]+(?:and|with|&|\+)[ \t]+)(?:pass\w{0,5}[ \t]+|pw[ \t]+)?[`\"']?(?P<v>[^\s`\"']{6,100})",
        "typed",
    ),
    row(
        "credential",
        " with | as | using ",
        r"(?:log(?<!\wlog) ?in|sign in(?<!\wsign in)|connect(?<!\wconnect)|ssh(?<!\wssh))[ \t]+(?:with|as|using)[ \t]+[`\"']?[\w.@-]{2,40}[ \t]{0,2}[:/][ \t]{0,2}(?P<v>[^\s`\"']{6,100})",
        "typed",
        words="log|sign|connect|ssh",
        probe=r"(?:log ?in|sign in|connect|ssh)[ \t]+(?:with|as|using)[ \t]",
    ),
    row(
        "credential",
        " / |\t/|/\t",
        r"(?:admin(?<!\wadmin)(?:istrator)?|root(?<!\wroot)|user(?<!\wuser)(?:name)?)[ \t]{1,2}/[ \t]{1,2}(?:pw |pass |password )?(?P<v>[^\s`\"',/]{6,100})",
        "typed",
        words="admin|root|user",
        probe=r"(?:admin|root|user)(?:istrator|name)?[ \t]{1,2}/[ \t]",
    ),
    row(
        "credential",
        " with |\twith|with\t",
        r"(?:admin(?<!\wadmin)(?:istrator)?|root(?<!\wroot)|user(?<!\wuser)(?:name)?)[ \t]{1,2}with[ \t]{1,2}(?:pw |pass )?(?P<v>[^\s`\"',/]{6,100})",
        "strong",
        words="admin|root|user",
        probe=r"(?:admin|root|user)(?:istrator|name)?[ \t]{1,2}with[ \t]",
    ),
    row(
        "password",
        ":54|:64|:65|:2506|:*:",
        r"(?<![\w./:@-])(?:[\w-]{1,60}(?:\.[\w-]{1,60}){0,6}|\*):(?:\d{4,5}|\*):(?:[\w-]{1,60}|\*):(?:[\w.-]{1,60}|\*):(?P<v>[^\s:]{5,200})(?=\r?\n|$)",
    ),
    row(
        "secret",
        "secret_id|SecretID|SecretId|secretId",
        r"\b[Ss]ecret_?[iI][dD][ \t:=\"]{1,40}(?P<v>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
    ),
    row(
        "secret",
        "setup key|secret key|app password|uthenticator",
        r"(?:setup key|secret key|app password|[Aa]uthenticator)[^\n:]{0,40}?(?::|\bis\b)[ \t]*(?P<v>[a-zA-Z0-9]{4}(?:[ -][a-zA-Z0-9]{4}){3,7})(?!\w)",
    ),
    row(
        "password",
        "phrase",
        r"(?i:pass[ ]?phrase)[ \t]{0,4}(?::|=|\bis\b)[ \t]*(?P<v>[a-z]{3,12}(?:[ -][a-z0-9]{2,12}){3,7})[ \t]*(?=\n|$)",
        "typed or phrase",
    ),
    row(
        "password",
        "as the |as pass|as my |as your ",
        r"(?:use|try|set|with|enter)[ \t]+[`\"']?(?P<v>[^\s`\"']{6,80})[`\"']?[ \t]+as[ \t]+(?:(?:the|your|my|a)[ \t]+)?(?:\w{1,12}[ \t]+)?(?:password|passphrase|pin)\b",
        "typed",
        words="password|passphrase| pin ",
    ),
    row(
        "credential",
        " / | admin | root ",
        r"(?:[\w.@:-]{2,60}[ \t]/[ \t][\w.@+-]{2,60}[ \t]/|\|[ \t]*(?:admin\w{0,10}|root)[ \t]*\|)[ \t]*(?P<v>[^\s|`\"',]{6,60})(?=[ \t|`]|$|\n)",
        "strong",
        probe=r"[/|](?:(?<=[ \t]/)[ \t][\w.@+-]{2,60}[ \t]/|(?<=\|)[ \t]*(?:admin|root))",
    ),
    row(
        "token",
        "oken|key|Key|code|icen|erial|ecret|oucher",
        r"(?i:token|key|code|licen[cs]e|serial|secret|voucher)\b[^\n]{0,60}?(?<![\w-])(?P<v>(?=[A-Za-z-]{0,40}\d)(?=[\d-]{0,30}[A-Za-z])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){3,7})(?![\w-])",
        "codes",
        probe=r"-(?<=[A-Za-z0-9]{4}-)[A-Za-z0-9]{4,6}-[A-Za-z0-9]{4}",
    ),
    row(
        "password",
        "SSID|ssid|ser|ogin|ccount|ifi|etwork",
        rf"{_ACCOUNT}[^\n]{{0,80}}?[,;/ ](?!PASS:){_LABEL}[ \t]{{0,4}}[:=][ \t:=]{{0,4}}[`\"']?(?P<v>(?![\[({{<])[^\s`\"',]{{5,80}})",
        "typed",
        words="pass|pw",
    ),
    row(
        "password",
        "SSID|ssid|ser|ogin|ccount|ifi|etwork",
        rf"{_ACCOUNT}[^\n]{{0,80}}?[,;/][ \t]{{0,4}}(?i:password|passwd|passphrase)[ \t]+[`\"']?(?P<v>[^\s`\"',]{{5,80}})",
        "typed",
        words="pass",
    ),
    row(
        "password",
        "SSID|ssid|ser|ogin|ccount|ifi|etwork",
        rf"{_ACCOUNT}[^\n]{{0,80}}?[,;/ ]{_LABEL}[ \t]+[`\"']?(?P<v>[^\s`\"',]{{5,80}})",
        "certain",
        words="pass|pw",
    ),
    row(
        "secret",
        "assword|ecret",
        r"(?i:passw\w{2,5}|secret|token|key)\b[^\n]{0,100}\n[ \t]*(?i:(?:new |temporary )?(?:value|password|secret|key|token))[ \t]*:[ \t]*(?P<v>[^\s\"'`]{8,200})(?=\s|$)",
        "strong",
    ),
    row(
        "password",
        " to ",
        r"\b(?i:use|with|enter|type|try)[ \t]+[`\"']?(?P<v>[^\s`\"']{6,60})[`\"']?[ \t]+to[ \t]+(?:unlock|log ?in|open|decrypt|sign in|connect|unzip|extract)\b",
        "strong",
        probe=r" to [ \t]*(?:unlock|log|open|decrypt|sign|connect|unzip|extract)",
    ),
    row(
        "pin",
        "code",
        r"(?i:2fa|mfa|two-factor|otp|one-time|sms|verification|authenticator)\b[^\n]{0,60}?\bcode[ \t:]+(?:is[ \t]+)?(?P<v>\d{6,8})(?!\w)",
        probe=r"code[ \t:]+(?:is[ \t]+)?\d{6}",
    ),
    row("token", "add-mask", r"::add-mask::(?P<v>\S{6,400})"),
    row("stream key", "live_", r"\blive_\d{6,12}_(?P<v>[A-Za-z0-9]{20,40})"),
    row(
        "password",
        "i-Fi|iFi|wifi|Wifi|SSID|ssid|otspot|outer",
        r"(?i:wi-?fi|ssid|hotspot|router)\b[^\n]{0,60}?\b(?i:code|key|pass\w{0,6}|pw)\b[^\n:=]{0,20}?(?:\bis\b|[:=])[ \t]*[`\"']?(?P<v>[^\s`\"',]{6,63})",
        "typed",
        words="code|key|pass|pw",
    ),
    row(
        "password",
        ":",
        r"(?<![0-9A-Za-z/])(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}):(?P<v>[^\s:\"']{5,40})(?=\s|$)",
        "strong",
        probe=r":(?<=[0-9a-f]{32}:)",
    ),
    row("pin", "PIN |PUK|CVV|CVC|cvv|cvc|OTP", r"\b(?:PIN|PUK\d?|CVV2?|CVC|cvv|cvc|OTP)[ \t]+(?P<v>\d{3,8})(?!\w)"),
    row(
        "pin",
        "code",
        r"\b(?:[Yy]our|[Uu]se|[Ee]nter)[ \t](?:(?!error|exit|status|return|area|zip|postal|country|promo|discount|coupon|http)[\w-]{1,20}[ \t]){0,3}code[ \t]{0,2}(?:is|:)?[ \t]*(?P<v>\d{3}[ -]?\d{1,5})(?!\w|\.\d)",
        probe=r"code[ \t]{0,2}(?:is|:)?[ \t]*\d{3}",
    ),
    row(
        "pin",
        "is your",
        r"(?<![\w.])(?P<v>\d{4,8})[ \t]is[ \t]your[ \t][\w -]{0,40}(?:code|password|otp|OTP|pin|PIN)\b",
    ),
    row("api token", "FlyV1 ", r"FlyV1[ \t]+(?P<v>fm\d[a-z]?_[A-Za-z0-9+/=_,-]{20,})"),
    row(
        "session",
        "ession-",
        r"[Ss](?i:ession-(?:id|token))\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?(?P<v>[\w+/=.-]{16,400})",
        "random",
    ),
    row("secret", "private-", r"/private-(?P<v>[0-9a-f]{32})\b"),
    row("telegram token", ":AA", r"(?<!\d)(?P<v>\d{8,10}:AA[A-Za-z0-9_-]{32,34})(?![\w-])"),
    row("firebase key", ":APA91b", r"(?<![\w-])(?P<v>[A-Za-z0-9_-]{8,30}:APA91b[A-Za-z0-9_-]{60,200})"),
    row("azure secret", "Q~", r"(?<![\w~.-])(?P<v>[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})"),
    row("azure key", "JQQJ9", r"(?<![A-Za-z0-9])(?P<v>[A-Za-z0-9]{40,60}JQQJ9[A-Za-z0-9]{5,})"),
    row(
        "azure key",
        "+A",
        r"(?<![A-Za-z0-9+/])(?P<v>[A-Za-z0-9+/]{40,80}\+A(?:STt|EhC|CDb|RSS|MC|zSe)[A-Za-z0-9+/]{4,12}={0,2})",
    ),
    row("terraform token", ".atlasv1.", r"(?<!\w)(?P<v>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})"),
    row("mail key", "-us", r"(?<![0-9a-f])(?P<v>[0-9a-f]{32}-us\d{1,2})(?!\w)", probe=r"-us\d(?<=[0-9a-f]{32}-us\d)"),
    row(
        "airtable token",
        "pat",
        r"pat(?<!\wpat)(?P<v>[A-Za-z0-9]{14}\.[0-9a-f]{64})(?!\w)",
        probe=r"pat[A-Za-z0-9]{14}\.",
    ),
    row("asana token", "1/|2/", r"[12]/(?<![\w/][12]/)(?P<v>\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32})(?!\w)"),
    row(
        "api key",
        "|".join(
            f"{before}{word}{behind}"
            for word in ("live", "prod", "test", "secret", "sec", "sk", "pat", "token", "api", "key", "tok")
            for before in "_-"
            for behind in "_-"
        ),
        r"(?<![\w-])(?!pk)[a-z][a-z0-9]{1,14}[_-](?:(?:live|prod|test|secret|sec|sk|pat|token|api|key|tok)[_-]){1,2}(?P<v>[A-Za-z0-9]{20,200})(?![\w-])",
        "dense",
        probe=r"[_-](?:live|prod|test|secret|sec|sk|pat|token|api|key|tok)[_-](?:[a-z]{2,6}[_-])?[A-Za-z0-9]{20}",
    ),
    row(
        "encoded token",
        "Z2hwX|Z2hvX|Z2hzX|Z2l0aHViX3BhdF|Z2xwYXQt|eG94Yi|eG94cC|QUtJQ|c2stYW50L|c2stcHJvai|c2tfbGl2ZV",
        r"(?<![A-Za-z0-9+/])(?P<v>(?:Z2h[wvz]X|Z2l0aHViX3BhdF|Z2xwYXQt|eG94[Yc][iC]|QUtJQ|c2stYW50L|c2stcHJvai|c2tfbGl2ZV)[A-Za-z0-9+/]{16,400}={0,2})",
    ),
    row("1password key", "A3-", r"(?<![\w-])(?P<v>A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5})(?![\w-])"),
    row("license key", "_mmk", r"(?<!\w)(?P<v>[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)(?!\w)"),
    row("salesforce session", "00D", r"(?<!\w)(?P<v>00D[A-Za-z0-9]{12}![\w.]{60,200})"),
    row("client secret", "_secret_", r"(?<!\w)(?P<v>(?:pi|seti|cs)_[A-Za-z0-9_]{10,40}_secret_[A-Za-z0-9]{16,60})"),
    row("twitch token", "oauth:", r"(?<!\w)oauth:(?P<v>[a-z0-9]{30})(?!\w)"),
    row("vault token", "s.", r"s\.(?<![\w.]s\.)(?P<v>[A-Za-z0-9]{24})(?![\w.])", "random", probe=r"s\.[A-Za-z0-9]{24}"),
    row("kubeadm token", "join", r"\bjoin\b[^\n]{0,200}--token[ =](?P<v>[a-z0-9]{6}\.[a-z0-9]{16})"),
    row(
        "wallet key",
        "wif|WIF|rivate|wallet|itcoin|btc|BTC|key",
        r"(?P<v>[5KL](?<![A-Za-z0-9].)[1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        "random",
        near=True,
    ),
)
"""Secrets in prose and in the output of programs, and keys that contain a fixed string."""
