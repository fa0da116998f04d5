r"""Values that redaction recognises by the text around them: headers, code, hashes, printed secrets.

To add one, add a row. Each pattern takes linear time: it begins with fixed characters, and whatever lies between them
and the value is limited.
"""

from __future__ import annotations

import re

from foldline.redact.command_patterns import COMMANDS
from foldline.redact.pattern_rows import row

HEADERS = (
    row("auth header", "earer", r"\b[Bb]earer[ \t]+(?P<v>[A-Za-z0-9._~+/=-]{16,})", "digit"),
    row("auth header", "asic ", r"\b[Bb]asic[ \t]+(?P<v>[A-Za-z0-9+/]{12,}={0,2})(?![\w ])", "digit"),
    row("auth header", "igest ", r"\bDigest[ \t]{1,4}[^\n]{0,300}?response=\"?(?P<v>[0-9a-f]{32,128})"),
    row(
        "auth header",
        "SSWS |Splunk |GenieKey |GoogleLogin ",
        r"\b(?:SSWS|Splunk|GenieKey|GoogleLogin auth=)[ \t]*(?P<v>[\w.=-]{16,})",
    ),
    row("signature", "Signature=", r"\bSignature=(?P<v>[0-9a-f]{64})"),
)
"""Credentials in headers."""

CODE = (
    row(
        "secret",
        "jwt.|Hmac|hmac|HMAC|Fernet|cookie|Cipher|JWT.",
        r"(?:\b(?:jwt|JWT)\.(?:sign|verify|encode|decode)|createHmac|createCipheriv|createDecipheriv|hash_hmac|(?:hmac|HMAC)\.new|Fernet|cookieParser|"
        r"cookieSession)[ \t]{0,2}\((?:[\w.\[\]\"'{}: -]{1,40},[ \t]*){0,2}[bu]?[\"'](?P<v>[^\"'\n]{6,200})[\"']",
        "typed",
    ),
    row(
        "api key",
        "lient(|Api(|API(|SDK(|Sdk(|Bot(|nalytics(|earch(|Service(|rovider(|Wallet(",
        r"(?:Client|Api|API|SDK|Sdk|Bot|[Aa]nalytics|[Ss]earch|Service|Provider|Wallet)\([ \t]{0,2}(?:[\"'][^\"'\n]{2,100}[\"'],[ \t]{0,4}){0,2}"
        r"[\"'](?P<v>[\w+/=-]{24,200})[\"']",
        "random",
    ),
    row(
        "api key",
        "lient(|Api(|API(",
        r"(?:Client|Api|API)\([ \t]{0,2}[\"'](?P<v>[A-Za-z0-9_+/=-]{32,200})[\"'],",
        "random",
    ),
    row(
        "secret",
        "Buffer.from|fromhex(|Decode",
        r"(?:Buffer\.from|fromhex|HexDecode|DecodeString)\([ \t]{0,2}[\"'](?P<v>(?:[0-9a-fA-F]{32}){1,4})[\"']",
    ),
    row("private key", "accounts", r"\baccounts\b[^\n\[]{0,10}\[[\s\"']{0,20}(?P<v>0x[0-9a-fA-F]{64})"),
    row("private key", "[", r"\[[ \t]{0,4}(?P<v>\d{1,3}(?:,[ \t]?\d{1,3}){31,127})\]", "bytes"),
    row(
        "token",
        "-oauth",
        r"\"\w{2,12}-oauth\"[ \t]*:[ \t]*\{\s{0,20}\"[\w.-]{3,60}\"[ \t]*:[ \t]*\"(?P<v>[\w-]{20,200})\"",
    ),
    row(
        "key",
        "username",
        r"\"username\"[ \t]*:[ \t]*\"[^\"\n]{1,60}\"[ \t]*,[ \t]*\"key\"[ \t]*:[ \t]*\"(?P<v>[\w-]{16,200})\"",
    ),
    row(
        "key",
        '"Key"|"key"',
        r"\"(?i:jwt|auth|token|signing)\w{0,12}\"[ \t]*:[ \t]*\{\s{0,20}\"(?i:key|secret|signingkey)\"[ \t]*:[ \t]*\"(?P<v>[^\"\n]{12,200})\"",
        "typed",
    ),
    row(
        "secret",
        '"Value"',
        r"\"Value\"[ \t]*:[ \t]*\"(?P<v>[^\"\n]{4,400})\"(?=[^{}]{0,200}\"SecureString\")",
        words="securestring",
    ),
    row("secret", "=", r"=[\"']?(?P<v>[A-Za-z0-9_+-]{32,200}+={0,2})(?=[\s\"',;]|$)", "env"),
    row("key", "igning", r"[Ss]igning_?[Kk]ey\\?[\"']?[ \t]*[:=][ \t]*\\?[\"'](?P<v>[\w+/=-]{20,400})", "random"),
    row(
        "password",
        "IDENTIFIED ",
        r"IDENTIFIED[ \t]+(?:WITH[ \t]+\S{1,40}[ \t]+)?(?:BY|AS)(?:[ \t]+PASSWORD)?[ \t]+[\"'](?P<v>[^\"'\n]{3,200})",
    ),
    row(
        "password",
        "dentified ",
        r"[Ii]dentified[ \t]+(?:with[ \t]+\S{1,40}[ \t]+)?(?:by|as)(?:[ \t]+password)?[ \t]+[\"'](?P<v>[^\"'\n]{3,200})",
        "typed",
    ),
    row(
        "password",
        "PASSWORD |assword |phrase ",
        r"(?i:\bpass(?:word|phrase))[ \t]+(?:is[ \t]+)?[\"'](?P<v>[^\"'\n]{4,200})[\"']",
        "typed or phrase",
    ),
    row(
        "password",
        "connect|Connect|asic_auth|asicAuth|login|Login|redential|uth|PDO(|mysqli|UserPassword|set_password|access_token(|lient(",
        r"(?=[BbLlCcAaPpgmsU])(?:[Bb]asic_?[Aa]uth\w{0,12}|\b[Ll]ogin|[Cc]redentials?|\b[Aa]uth(?:enticate)?|PlainAuth|plain_auth|getConnection|Client|"
        r"[Cc]onnect|PDO|mysqli|UserPassword|set_password|set_access_token)[ \t]{0,2}(?:=[ \t]{0,2})?(?:\(|(?<=_auth )(?=[\"']))"
        r"(?P<v>(?:Some\(|[^()\n]){5,400})",
        "arguments",
    ),
    row(
        "key",
        "AES|DES|SecretKeySpec|SignedString|SecurityKey|hmacSha|SecretKey(|importKey|_encrypt|_ENCRYPT|_decrypt|_DECRYPT|Cipher|SecretString",
        r"(?:\b(?:AES|DES3?|ChaCha20\w{0,9})\.new|SecretKeySpec|SignedString|SymmetricSecurityKey|hmacShaKeyFor|createSecretKey|importKey|SecretString(?:::new|::from)?|"
        r"(?:AES|aes|pgp_sym|DES)_(?:encrypt|decrypt|ENCRYPT|DECRYPT)|SecretBox|Cipher)\((?:[\w.\[\]()&-]{0,40},?[ \t]{0,4}){0,2}"
        r"[bu]?[\"'](?P<v>[^\"'\n]{6,200})[\"']",
        "typed",
    ),
    row(
        "password",
        "btoa(|b64encode(|base64|Buffer.from(|Base64",
        r"(?:btoa|b64encode|Buffer\.from|encodeToString|b64encode64|strict_encode64)\([bu]?[\"'][\w.@-]{1,60}:(?P<v>[^\"'\n]{4,120})[\"']|"
        r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?[\w.@-]{1,60}:(?P<w>[^\s\"'|]{4,120})[\"']?[ \t]*\|[ \t]*(?:openssl[ \t]+)?base64",
        "typed",
    ),
    row(
        "password",
        "@",
        r"(?<![\w/.@:+-])(?!mailto|npm|git|image|file)[\w.-]{1,40}:(?P<v>[^\s:@/\"'`<>(){}]{6,100})@(?!sha\d)(?:(?:tcp|unix)\(|[A-Za-z][\w-]{0,40}(?:\.[\w-]{1,40}){0,5}[:/]|\d{1,3}\.\d)",
        "strong",
    ),
    row("password", ";P:", r"WIFI:[^\n]{0,80}?;P:(?P<v>[^;\n]{4,100});", words="wifi"),
    row(
        "password",
        "form-data",
        r"name=\"[\w.\[-]{0,40}(?i:passw|secret|token|pwd|api_?key)[\w.\]-]{0,20}\"[^\n]{0,80}\r?\n(?:[^\r\n]{1,80}\r?\n){0,2}\r?\n(?P<v>[^\r\n]{4,400})",
    ),
    row(
        "secret",
        "--body|--value|--data|--secret-string|--secret-value|--string-value|--from-literal",
        r"(?i:secrets?|keyvault|put-parameter|variable)\b[^\n]{0,160}?--(?:body|value|data|secret-string|secret-value|string-value)[ \t=][\"']?(?P<v>[^\s\"']{6,400})",
        "typed",
        words="secret|keyvault|put-parameter|variable",
    ),
    row(
        "secret",
        "--from-literal",
        r"--from-literal[ =][\"']?(?!\w{0,20}user)[\w.-]{1,60}=[\"']?(?P<v>[^\s\"']{6,400})",
        "typed",
    ),
    row(
        "password",
        "-command|-cmd",
        r"--pass\w{0,10}-(?:command|cmd)[ =][\"']?(?:echo|printf)[ \t]+[\"']?(?P<v>[^\s\"']{4,120})",
    ),
    row("password", "]:", r"\[[\w.-]{3,80}\]:\d{2,5}[ \t]+[\w.@+-]{1,80}:(?P<v>[^\s:]{4,120})(?=\s|$)"),
    row(
        "password",
        "chap|ppp|pptp|l2tp|secrets",
        r"(?:^|\n)[\"']?[\w.@-]{1,40}[\"']?[ \t]+(?:\*|\w{1,20})[ \t]+[\"']?(?P<v>[^\s\"'*]{6,80})[\"']?[ \t]+\*[ \t]*(?=\n|$)",
        "strong",
    ),
    row("password", "assword(|ASSWORD(", r"(?i:password)\([ \t]{0,4}[\"'](?P<v>[^\"'\n]{4,200})[\"']", "typed"),
    row("auth", '"auth', r"\"auth\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9+/]{8,}={0,2})\\?\""),
    row(
        "private key",
        '"kty|\\"kty',
        r"\"kty\\?\"(?:(?![{}])[^\n]){0,3000}?\"(?:d|k)\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9_-]{20,})",
    ),
    row(
        "private key",
        '"kty|\\"kty',
        r"\"(?:d|k)\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9_-]{20,})\\?\"(?:(?![{}])[^\n]){0,3000}?\"kty",
    ),
    row(
        "secret",
        '"value|"Value',
        r"\"[Vv]alue\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[^\"\n\\]{4,400})\\?\"[ \t]*,\s{0,40}\\?\"(?:[Nn]ame|[Kk]ey)\\?\"[ \t]*:[ \t]*\\?\"[\w.-]{0,60}(?i:passw|secret|token|api_?key|_key|passphrase|credential)[\w.-]{0,20}\\?\"",
        words="passw|secret|token|api|key|passphrase|credential",
    ),
    row(
        "secret",
        "value=",
        r"\bvalue=\"(?P<v>[^\"\n<>]{4,400})\"[ \t]{1,8}(?:name|key|id)=\"[\w.-]{0,60}(?i:passw|secret|token|api_?key|passphrase|credential)[\w.-]{0,20}\"",
        words="passw|secret|token|api|key|passphrase|credential",
    ),
    row(
        "secret",
        "value:",
        r"\bvalue:[ \t]*[\"']?(?P<v>[^\s\"']{4,400})[\"']?\s{0,40}\n[ \t-]{0,40}(?:name|key):[ \t]*[\"']?[\w.-]{0,60}(?i:passw|secret|token|api_?key|passphrase|credential)[\w.-]{0,20}[\"']?(?:\s|$)",
        words="passw|secret|token|api|key|passphrase|credential",
    ),
    row(
        "password",
        "%22%3A|%3D|%22%3a",
        r"(?i:passw|pwd|secret|token|api_?key|passphrase)\w{0,16}(?:%22%3A(?:%20|\+)?%22|%3D)(?P<v>[^\s%&\"']{4,400})",
        "",
        re.IGNORECASE,
        words="passw|pwd|secret|token|api|passphrase",
    ),
)
"""Secrets in code, statements and data."""

HASHES = (
    row("password hash", "$krb5", r"\$krb5\w{2,10}\$(?P<v>[^\s\"']{20,4000})"),
    row("password hash", "::", r"::[\w.-]{0,40}:[0-9a-fA-F]{16}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{20,1000})"),
    row("password hash", "$2", r"\$2[abxy]\$\d{2}\$(?P<v>[./A-Za-z0-9]{50,60})"),
    row(
        "password hash",
        "$",
        r"\$(?<![\w$]\$)(?:1|5|6|7|y|gy|md5|sha1|apr1|P|H|2|scrypt|8|9|14|sm3)\$(?P<v>[^\s:\"'`,;<>]{16,300})",
    ),
    row("password hash", "$argon2", r"\$argon2\w{1,2}\$(?P<v>[^\s:\"'`;<>]{20,300})"),
    row(
        "password hash",
        "pbkdf2|scrypt|bcrypt_",
        r"\b(?:pbkdf2|scrypt|bcrypt)[_:]?\w{0,10}[$:]\d[\w:]{0,20}\$(?P<v>[^\s\"'`;<>]{20,300})",
    ),
    row(
        "password hash",
        "{SHA|{SSHA|{MD5|{SMD5|{CRYPT|{PBKDF2|{ARGON2",
        r"\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|PBKDF2\w{0,10}|ARGON2)\}(?P<v>[A-Za-z0-9+/=$.]{16,300})",
    ),
    row("password hash", "SCRAM-SHA", r"SCRAM-SHA-\d{1,3}\$(?P<v>\d{1,8}:[A-Za-z0-9+/=$:]{30,400})"),
    row("password hash", ":::", r"(?<!\w)[\w.$-]{1,40}:\d{1,6}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::"),
    row("password hash", "'md5|\"md5", r"[\"']md5(?P<v>[0-9a-f]{32})[\"']"),
)
"""Hashes of passwords."""

OUTPUTS = (
    row(
        "secret",
        "phrase|nemonic|NEMONIC|PHRASE|eed words",
        r"(?i:(?:recovery|seed|backup|secret|wallet)[ _-]?(?:phrase|words)|mnemonic)[\w \t()\"'-]{0,40}[:=]?\s{0,8}[\"']?(?P<v>(?:(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8}[ ,\n\t]{1,6}){11,23}(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8})",
    ),
    row(
        "secret",
        "ode",
        r"(?=[rbseoRBSEO])(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[^\n]{0,60}\n+(?P<v>(?:(?=[^\n]{0,60}\d)[ \t>*•-]{0,8}(?:\d{1,2}[.)][ \t]+)?[A-Za-z0-9]{4,10}(?:[ -][A-Za-z0-9]{3,10}){0,4}[ \t]{0,8}(?:\n|$)){1,20})",
        words="recovery|backup|scratch|emergency|one-time",
    ),
    row(
        "secret",
        "ode",
        r"(?=[rbseoRBSEO])(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[ \t]{0,4}[\"']?[:=][ \t]*\[?(?P<v>[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?(?:[ ,]{1,3}[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?){0,20})",
        words="recovery|backup|scratch|emergency|one-time",
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
    ),
    row(
        "credential",
        "creds|redential|ogin|l/p|u/p|L/p|U/p",
        r"\b(?=[CcLlUu])(?i:creds?|credentials?|logins?|l/p|u/p)\b[^\n:=]{0,50}?(?:[:=]|\b(?:is|are)\b)[ \t]*[`\"'(]?[\w.@+-]{2,40}[ \t]{0,2}[:/|,][ \t]{0,2}[`\"']?(?P<v>[^\s`\"']{6,100})",
        "typed",
    ),
    row(
        "credential",
        " with | as | using ",
        r"(?:log(?<!\wlog) ?in|sign in(?<!\wsign in)|connect(?<!\wconnect)|ssh(?<!\wssh))[ \t]+(?:with|as|using)[ \t]+[`\"']?[\w.@-]{2,40}[ \t]{0,2}[:/][ \t]{0,2}(?P<v>[^\s`\"']{6,100})",
        "typed",
        words="log|sign|connect|ssh",
    ),
    row(
        "credential",
        " with |\twith|with\t| / |\t/|/\t",
        r"(?:admin(?<!\wadmin)(?:istrator)?|root(?<!\wroot)|user(?<!\wuser)(?:name)?)[ \t]{1,2}(?:/|with)[ \t]{1,2}(?:pw |pass |password )?(?P<v>[^\s`\"',/]{6,100})",
        "typed",
        words="admin|root|user",
    ),
    row(
        "password",
        ":54|:64|:65|:2506|:*:",
        r"(?:^|\n)(?:[\w-]{1,60}(?:\.[\w-]{1,60}){0,6}|\*):(?:\d{4,5}|\*):(?:[\w-]{1,60}|\*):(?:[\w.-]{1,60}|\*):(?P<v>[^\s:]{5,200})(?=\r?\n|$)",
    ),
    row("secret", "secret_id", r"\bsecret_id[ \t:=\"]{1,40}(?P<v>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"),
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
    row("mail key", "-us", r"(?<![0-9a-f])(?P<v>[0-9a-f]{32}-us\d{1,2})(?!\w)"),
    row("airtable token", "pat", r"pat(?<!\wpat)(?P<v>[A-Za-z0-9]{14}\.[0-9a-f]{64})(?!\w)"),
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
    ),
    row("1password key", "A3-", r"(?<![\w-])(?P<v>A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5})(?![\w-])"),
    row("license key", "_mmk", r"(?<!\w)(?P<v>[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)(?!\w)"),
    row("salesforce session", "00D", r"(?<!\w)(?P<v>00D[A-Za-z0-9]{12}![\w.]{60,200})"),
    row("client secret", "_secret_", r"(?<!\w)(?P<v>(?:pi|seti|cs)_[A-Za-z0-9_]{10,40}_secret_[A-Za-z0-9]{16,60})"),
    row("twitch token", "oauth:", r"(?<!\w)oauth:(?P<v>[a-z0-9]{30})(?!\w)"),
    row("vault token", "s.", r"s\.(?<![\w.]s\.)(?P<v>[A-Za-z0-9]{24})(?![\w.])", "random"),
    row("kubeadm token", "join", r"\bjoin\b[^\n]{0,200}--token[ =](?P<v>[a-z0-9]{6}\.[a-z0-9]{16})"),
    row(
        "wallet key",
        "wif|WIF|rivate|wallet|itcoin|btc|BTC|key",
        r"(?<![A-Za-z0-9])(?P<v>[5KL][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        "random",
        near=True,
    ),
)
"""Secrets in prose and in the output of programs, and keys with a mark inside."""

CONTEXT_PATTERNS = (*HEADERS, *COMMANDS, *CODE, *HASHES, *OUTPUTS)
