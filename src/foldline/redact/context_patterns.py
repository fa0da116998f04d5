r"""Patterns for values that are recognised by the text around them: headers, code, hashes, printed secrets.

To add a pattern, add a row. Each pattern takes linear time: it begins with fixed characters, and the distance
from these characters to the value is limited.
"""

from __future__ import annotations

import re

from foldline.redact.command_patterns import COMMANDS
from foldline.redact.output_patterns import OUTPUTS
from foldline.redact.pattern_rows import row

HEADERS = (
    row("auth header", "earer", r"\b[Bb]earer[ \t]+(?P<v>[A-Za-z0-9._~+/=-]{16,})", "digit"),
    row("auth header", "asic ", r"\b[Bb]asic[ \t]+(?P<v>[A-Za-z0-9+/]{12,}={0,2})(?![\w ])", "user:password"),
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
    *(
        row(
            "private key",
            mark,
            rf"\{mark}[ \t]{{0,4}}(?P<v>\d{{1,3}}(?:,[ \t]?\d{{1,3}}){{15,127}})[ \t]{{0,4}}[\]}}]",
            "bytes",
            probe=rf"\{mark}[ \t]{{0,4}}\d{{1,3}},[ \t]?\d",
        )
        for mark in "[{"
    ),
    row("private key", "0x", r"[\[{(][ \t]{0,4}(?P<v>0x[0-9a-fA-F]{2}(?:,\s{0,4}0x[0-9a-fA-F]{2}){15,63})", "bytes"),
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
    row(
        "secret",
        "=",
        r"=[\"']?(?P<v>[A-Za-z0-9_+-]{32,200}+={0,2})(?=[\s\"',;]|$)",
        "env",
        probe=r"=[\"']?[A-Za-z0-9_+-]{32}",
    ),
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
        "PASSWORD|assword",
        r"\b(?i:set[ \t]+password[ \t]+for)[ \t]+[^\n=;]{1,80}=[ \t]*(?:\w{1,16}\()?[\"'](?P<v>[^\"'\n]{3,200})",
        probe=r"[Ss][Ee][Tt][ \t]+[Pp][Aa][Ss][Ss][Ww]",
    ),
    row(
        "secret",
        "$(echo |$(printf |`echo |`printf ",
        r"(?i:passw|pwd|secret|token|api_?key|passphrase)\w{0,16}=[\"']?(?:\$\(|`)(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"'](?P<v>[^\"'\n]{4,200})[\"']",
        "typed or phrase",
        words="passw|pwd|secret|token|api|passphrase",
    ),
    row(
        "password",
        "PASSWORD |assword |phrase ",
        r"(?i:\bpass(?:word|phrase))[ \t]+(?:is[ \t]+)?[\"'](?P<v>[^\"'\n]{4,200})[\"']",
        "typed or phrase",
    ),
    row(
        "password",
        "connect|Connect|database(|WiFi.begin|_bind|asic_auth|asicAuth|login|Login|redential|uth|PDO(|__construct(|mysqli|UserPassword|set_password|access_token(|lient(",
        r"(?=[BbLlCcAaPpgmsUdWl_])(?:[Bb]asic_?[Aa]uth\w{0,12}|\b[Ll]ogin|[Cc]redentials?|\b[Aa]uth(?:enticate)?|PlainAuth|plain_auth|getConnection|Client|"
        r"[Cc]onnect|database|WiFi\.begin|ldap_\w{0,6}bind|PDO|__construct|mysqli|UserPassword|set_password|set_access_token)[ \t]{0,2}(?:=[ \t]{0,2})?(?:\(|(?<=_auth )(?=[\"']))"
        r"(?P<v>(?:Some\(|[^()\n]){5,400})",
        "arguments",
    ),
    row(
        "key",
        "AES.new|DES.new|DES3.new|SecretKeySpec|SignedString|SecurityKey|hmacSha|SecretKey(|importKey|_encrypt|_ENCRYPT|_decrypt|_DECRYPT|Cipher|SecretString",
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
        r"(?<![\w/.@:+-])(?!mailto|npm|git|image|file)(?:[\w.-]{1,30}/)?[\w.-]{1,40}:(?P<v>[^\s:@/\"'`<>(){}]{6,100})@(?!sha\d)(?:(?:tcp|unix)\(|[A-Za-z][\w-]{0,40}(?:\.[\w-]{1,40}){0,5}[:/]|\d{1,3}\.\d)",
        "strong",
    ),
    row(
        "secret",
        "kubectl ",
        r"kubectl[ \t][^\n]{0,200}secret[^\n]{0,200}base64[ \t]+(?:-d|-D|--decode)[^\n]{0,40}\n(?P<v>\S{6,400})(?=\n|$)",
        "typed",
        words="base64",
    ),
    row(
        "secret",
        "etup key|uthenticator",
        r"(?:etup key|uthenticator)[^\n:]{0,60}:[ \t]{0,4}(?P<v>[A-Z2-7]{16,64}={0,6})\b",
        "digit",
    ),
    row("secret", "OTP(|otp(", r"(?:[THth]?OTP|[th]?otp)\([ \t]{0,4}[\"'](?P<v>[A-Z2-7]{16,64}={0,6})[\"']", "digit"),
    row(
        "password",
        "ring::from(|Secret",
        r"(?i:passw|pwd|secret|token)\w{0,20}(?:[ \t]{0,4}:[ \t]{0,4}\w{1,20})?[ \t]{0,4}[:=][ \t]{0,4}"
        r"(?:Secret(?:String|Str)?(?:::new|::from)?\()?(?:String::from)?\(?[\"'](?P<v>[^\"'\n]{6,200})[\"']",
        "typed",
        words="passw|pwd|secret|token",
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
    row("key", "encrypt", r"\bencrypt(?:ion)?[\"']?[ \t]*[:=][ \t]*[\"'](?P<v>[A-Za-z0-9+/]{22,64}={1,2})[\"']"),
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
    row("password hash", "$2", r"\${1,2}2[abxy]\${1,2}\d{2}\${1,2}(?P<v>[./A-Za-z0-9]{50,60})"),
    row(
        "password hash",
        "$",
        r"\$(?<![\w$]\$)\$?(?:1|5|6|7|y|gy|md5|sha1|apr1|P|H|2|scrypt|8|9|14|sm3)\${1,2}(?P<v>[^\s:\"'`,;<>]{16,300})",
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
    row("password", "{PLAIN|{CLEAR|{plain", r"\{(?:PLAIN|CLEARTEXT|CLEAR|plain)\}(?P<v>[^\s\"':]{4,100})"),
    row("password hash", "SCRAM-SHA", r"SCRAM-SHA-\d{1,3}\$(?P<v>\d{1,8}:[A-Za-z0-9+/=$:]{30,400})"),
    row("password hash", ":::", r"(?<!\w)[\w.$-]{1,40}:\d{1,6}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::"),
    row("password hash", "'md5|\"md5", r"[\"']md5(?P<v>[0-9a-f]{32})[\"']"),
)
"""Hashes of passwords."""

CONTEXT_PATTERNS = (*HEADERS, *COMMANDS, *CODE, *HASHES, *OUTPUTS)
