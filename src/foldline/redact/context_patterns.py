r"""Values that redaction recognises by the text around them: headers, commands, code, hashes, printed secrets.

To add one, add a row. Each pattern takes linear time: it begins with fixed characters, and whatever lies between them
and the value is limited.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class ContextPattern(NamedTuple):
    """A value that is recognised by the text around it. Group `v` of the pattern is the value."""

    kind: str
    marks: tuple[str, ...]
    """Fixed strings, one of which every match contains. A text without any of them is not searched."""
    pattern: re.Pattern[str]
    check: str = ""
    """What else the value must be: a key of `CHECKS` in `context_values.py`, or nothing."""


def _row(kind: str, marks: str, pattern: str, check: str = "", flags: int = 0) -> ContextPattern:
    """A row; `marks` are separated by `|`."""
    return ContextPattern(kind, tuple(marks.split("|")), re.compile(pattern, flags), check)


_Q = r"""\\{0,2}["'`]?"""
_WORD = r"""(?P<v>[^\s"'`|;<>]{3,200})"""
_ANY = (
    r"""(?:"(?P<v>[^"\n]{3,200})"|'(?P<w>[^'\n]{3,200})'|\\?["'](?P<x>[^"'\n\\]{3,200})|(?P<y>[^\s"'`|;<>]{3,200}))"""
)
"""A value in quotes or without; the group that matched is the value."""
_WITHIN = r"(?:[ \t]++[^\s|;]++){0,25}?[ \t]++"
"""Other arguments of the same command."""


def _command(names: str, flag: str, check: str = "") -> ContextPattern:
    """A command with a flag that is followed by a secret."""
    marks = "|".join(f"{name} " for name in names.split("|"))
    return _row("password", marks, rf"(?<![\w-])(?:{names}){_WITHIN}{flag}{_ANY}", check)


HEADERS = (
    _row("auth header", "earer", r"\b[Bb]earer[ \t]+(?P<v>[A-Za-z0-9._~+/=-]{16,})", "digit"),
    _row("auth header", "asic ", r"\b[Bb]asic[ \t]+(?P<v>[A-Za-z0-9+/]{12,}={0,2})(?![\w ])", "digit"),
    _row("auth header", "igest ", r"\bDigest[ \t]{1,4}[^\n]{0,300}?response=\"?(?P<v>[0-9a-f]{32,128})"),
    _row(
        "auth header",
        "SSWS |Splunk |GenieKey |GoogleLogin ",
        r"\b(?:SSWS|Splunk|GenieKey|GoogleLogin auth=)[ \t]*(?P<v>[\w.=-]{16,})",
    ),
    _row("signature", "Signature=", r"\bSignature=(?P<v>[0-9a-f]{64})"),
)
"""Credentials in headers."""

COMMANDS = (
    _row(
        "password",
        "-u |-U |--user",
        r"(?<!\S)(?:-[uU]|--user(?:name)?)[ \t=]\S{1,80}(?:[ \t]++[^\s|;]++){0,8}?[ \t]++(?:-[pP]|--pass)[ \t=]{0,2}"
        r"[\"']?(?P<v>[^\s\"'`|;<>]{5,100})",
        "strong",
    ),
    _row(
        "password",
        "-u|-U|-A|--user|--auth|--creds|--proxy-user",
        r"(?<!\S)(?:-[uUA]|--(?:user|auth|auth-cred|creds|proxy-user))[ \t=]{0,2}(?:"
        r"[\"'][\w.@+/\\-]{0,80}[:%](?P<v>[^\"'\n]{4,100})[\"']|[\w.@+/\\-]{0,80}[:%](?P<w>[^\s\"'`|;<>]{4,100}))",
        "typed or spaced",
    ),
    _row("password", "-u", r"(?<!\S)-u[ \t]{0,2}[\"']?(?P<v>[A-Za-z0-9_-]{16,200}):[\w\"' ]", "random"),
    _row(
        "password",
        "auth|login|digest",
        r"(?<![\w-])(?:auth|login|digest)[ \t]+[\w.-]{1,40}:(?P<v>[^\s\"'`|;<>:]{5,100})",
        "strong",
    ),
    _row(
        "password",
        "mc alias set|authorize-account|http-basic.|mc config host add",
        r"(?:mc[ \t]+(?:alias[ \t]+set|config[ \t]+host[ \t]+add)[ \t]+\S{1,60}[ \t]+\S{1,120}|authorize-account|http-basic\.\S{1,60})"
        r"[ \t]+\S{1,80}[ \t]+(?P<v>[^\s\"'`|;<>]{5,100})",
    ),
    _command("vault operator unseal|wandb login|heroku auth:login|op signin", r"", "random"),
    _command("db2 connect|db2 attach", r"using[ \t]+"),
    _command("signtool|certutil|psexec|sc.exe|schtasks", r"[-/][pP][ \t]{1,4}"),
    _command("qpdf", r"--encrypt[ \t]+"),
    _row(
        "password",
        "mkpasswd|openssl passwd|rclone obscure|wpa_passphrase|dscl",
        r"(?:mkpasswd|openssl passwd|rclone obscure|wpa_passphrase|dscl)(?:[ \t]++[^\s|;>]++){0,8}?[ \t]++"
        r"[\"']?(?P<v>[^\s|;>\"']{5,100})[\"']?(?=[ \t]*(?:$|[\n|;>]))",
        "strong",
    ),
    _command("security", r"-[wp][ \t]+", "strong"),
    _command("keytool", r"-new[ \t]+"),
    _row(
        "password",
        "user",
        r"\buser(?:name)?[ \t]+[\"']?[\w.@+-]{1,60}[\"']?[ \t,]+pass(?:word)?[ \t]+[\"']?(?P<v>[^\s\"']{4,100})",
        "typed",
    ),
    _command("x11vnc", r"-passwd[ \t]+"),
    _row("password", "-setcookie", r"-setcookie[ \t]+(?P<v>\S{8,100})"),
    _row("password", "SETUSER| on >", r"(?:SETUSER|\buser)[ \t]+\S{1,40}[^\n]{0,40}?[ \t]>(?P<v>[^\s\"']{4,100})"),
    _row(
        "password",
        "LOGIN ",
        r"(?:^|\n|[\w.]{1,8}[ \t])LOGIN[ \t]+[\"']?[\w.@+-]{1,60}[\"']?[ \t]+[\"']?(?P<v>[^\s\"']{4,100})(?=[\"'\s]|$)",
        "strong",
    ),
    _row("password", "AUTH PLAIN|AUTH LOGIN", r"AUTH[ \t]+(?:PLAIN|LOGIN)[ \t]+(?P<v>[A-Za-z0-9+/=]{12,})"),
    _row(
        "password",
        "-server|neighbor",
        r"(?:radius|tacacs|ntp)[-\w]{0,8}[ \t][^\n]{0,60}?\bkey[ \t]+(?:\d[ \t]+)?(?P<v>\S{5,80})",
        "typed",
    ),
    _row("password", "ontent", r"Key Content[ \t]*:[ \t]*(?P<v>\S{8,63})"),
    _row(
        "password",
        "chpasswd",
        r"chpasswd:\s{1,20}list:[ \t]*\|\s{1,20}(?P<v>\w[\w.-]{0,40}:[^\s:]{4,100}(?:\n[ \t]+\w[\w.-]{0,40}:[^\s:]{4,100}){0,20})",
    ),
    _row(
        "password",
        ">",
        r"(?:echo|printf)[ \t]+(?:-[ne]{1,2}[ \t]+)?(?:[\"'](?P<v>[^\"'\n\\]{4,120})[\"']|(?P<w>[^\s\"'|\\]{4,120}))[ \t]*>{1,2}[ \t]*[^\s|;&]{0,80}"
        r"(?i:pass|secret|token|credential|\.key\b)",
        "strong",
    ),
    _row("password", "login ", r"login[ \t]+\S{1,80}\s+password[ \t]+(?P<v>\S{3,200})"),
    _command("wget|xh|http|https|httpie", r"(?:-u|--user|-a|--auth|--proxy-user|-U)[ \t=]*[\"']?[^\s:\"']{1,80}:"),
    _row(
        "password",
        "curl ",
        r"curl\b(?:(?!curl\b)[^\n]){0,300}?[ \t](?:-u|--user)[ \t=]*[\"']?[^\s:\"']{1,80}:(?P<v>[^\s\"']{3,200})",
    ),
    _row(
        "cookie",
        "curl ",
        r"curl\b(?:(?!curl\b)[^\n]){0,300}?[ \t](?:-b|--cookie)[ \t=]*[\"'](?P<v>[^\n\"']{8,4000})",
        "random pairs",
    ),
    _row("password", "sshpass", r"sshpass[ \t]+-p[ \t]*[\"']?(?P<v>[^\s\"']{3,200})"),
    _command(
        "mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mysqlcheck|mariadb|mariadb-dump|xtrabackup", r"-p(?![ \t-])"
    ),
    _command("mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport", r"(?:-p|--password)[ \t=]{1,4}(?!-)"),
    _command(
        "docker login|podman login|nerdctl login|helm registry login|oc login|crane auth login|buildah login|skopeo login",
        r"-p[ \t=]{1,4}",
    ),
    _command("az login|az acr login|argocd login|oras login", r"(?:-p|--password)[ \t=]{1,4}"),
    _command("redis-cli|valkey-cli|keydb-cli", r"(?:-a|--pass)[ \t=]{1,4}"),
    _command("sqlcmd|bcp|osql|isql|ipmitool|tsql", r"-P[ \t]*(?!\d{1,5}\b)"),
    _command("zip|unzip|zipcloak|7z|7za|7zz|rar|unrar", r"(?:-P[ \t]*|-h?p(?![ \t])|--password[ \t=]{1,4})"),
    _command("ldapsearch|ldapmodify|ldapadd|ldappasswd|ldapwhoami|ldapdelete", r"-w[ \t]*"),
    _command(
        "smbclient|rpcclient|winexe|mount.cifs|net rpc|smbmap|crackmapexec|nxc",
        r"(?:-U|--user)[ \t=]*[\"']?[^\s%\"']{1,80}%",
    ),
    _command("crackmapexec|nxc|smbmap|evil-winrm|hydra|medusa", r"-p[ \t]{1,4}(?!\d{1,5}\b)"),
    _command("lftp|ncftp|ncftpput", r"-u[ \t]*[^\s,]{1,80},"),
    _command("ncftpput|ncftpget|pg_basebackup", r"-p[ \t]{1,4}(?!\d{1,5}\b)"),
    _command("xfreerdp|wfreerdp|rdesktop", r"(?:/p:|-p[ \t]{1,4})"),
    _command("snmpwalk|snmpget|snmpset|snmpbulkwalk", r"-[AX][ \t]{1,4}"),
    _command("cmdkey", r"/pass:"),
    _command("htpasswd", r"-\w{0,5}b\w{0,5}[ \t]+\S{1,200}[ \t]+\S{1,80}[ \t]+"),
    _command("oathtool", r"(?:-b[ \t]+|--base32[ \t]+|--totp[ \t]+(?!-))"),
    _command("useradd|usermod", r"(?:-p|--password)[ \t=]{1,4}"),
    _command(
        "pkcs12|openssl|ssh-keygen",
        r"-(?:N|P|passin|passout|pass|password|k|K|iv)[ \t]{1,4}(?:pass:)?(?!file:|env:|stdin|fd:)",
        "typed",
    ),
    _row("password", "pass:", r"(?<![\w-])pass:(?P<v>[^\s\"'`|;]{4,200})"),
    _command(
        "cargo login|vault login|ngrok config add-authtoken|ngrok authtoken|snyk auth|sentry-cli login", r"", "random"
    ),
    _row(
        "password",
        "echo |printf ",
        r"(?:echo|printf)[ \t]+(?:-[ne]{1,2}[ \t]+)?(?:[\"']%s(?:\\n)?[\"'][ \t]+)?(?:\\?[\"'](?P<v>[^\"'\n\\]{3,120})|(?P<w>[^\s\"'|\\]{3,120}))"
        r"[^\n|]{0,20}\|[ \t]*(?:sudo[ \t]+(?:-\w+[ \t]+)*-S|[^\n|]{0,60}(?:secret|passw|pass-stdin|token|login|kinit|cryptsetup|openconnect|vault|keyring|credential))",
        "typed or phrase",
    ),
    _row(
        "password",
        "git config |set -|setx |setenv |Env:|configure set |config set |config:set ",
        r"(?:\bset[ \t]+-\w{1,3}|\bsetx|\bsetenv|Env:|configure[ \t]+set|config[ \t]+set|git[ \t]+config(?:[ \t]+--\w{1,10})?|config:set)[ \t]*[\w.:-]{0,60}(?i:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|_key|apikey|api[._-]key|credential)\w{0,12}[ \t]+[\"']?(?P<v>[^\s\"']{6,400})",
    ),
    _row(
        "password",
        "net user|add_user|change_password",
        r"(?:net user|rabbitmqctl[ \t]+(?:add_user|change_password))[ \t]+\S{1,80}[ \t]+(?P<v>(?![/*])\S{5,100})",
    ),
    _row("password", "net use", r"net use\b[^\n]{0,120}?[ \t](?P<v>(?![/\\*-])[^\s:]{5,100})[ \t]+/user:", "typed"),
    _row(
        "password",
        "oracle:|sqlplus |expdp |impdp ",
        r"(?:oracle:(?:thin|oci):|(?:sqlplus|expdp|impdp)[ \t]+(?:-\w{1,3}[ \t]+)?)[\"']?[\w.$#]{1,40}/(?P<v>[^\s@/\"']{3,100})(?=[@\s\"'])",
    ),
    _row("password", "community ", r"(?:snmp-server[ \t]+community|\br[ow]community6?)[ \t]+(?P<v>[^\s\"']{4,100})"),
    _row(
        "password",
        "&quot;",
        r"(?i:passw|pwd|secret|token|api_?key|passphrase)\w{0,16}&quot;[ \t]*:[ \t]*&quot;(?P<v>[^&\s]{4,400})",
    ),
    _row("password", "SecureString", r"SecureString[ \t]+(?:-String[ \t]+)?[\"'](?P<v>[^\"'\n]{3,200})"),
    _row(
        "password",
        "AUTH ",
        r"(?:(?:^|\n)[ \t]*|>[ \t]*|\"|')AUTH[ \t]+(?:[\w.-]{1,60}[ \t]+)?(?P<v>(?!TLS|SSL|LOGIN|PLAIN|CRAM|XOAUTH|NTLM|GSSAPI)[^\s\"']{5,200})",
        "typed",
    ),
    _row(
        "password",
        "requirepass|masterauth|bindpw|rootpw|rootdn|user-pass",
        r"\b(?:requirepass|masterauth|bindpw|rootpw)[ \t]+(?:--?\w{1,12}[ \t]+)?[\"']?(?P<v>(?!foobared|-)[^\s\"']{4,200})",
    ),
    _row("password", "user-pass", r"<auth-user-pass>\s{1,4}[^\s<]{1,80}\s{1,4}(?P<v>[^\s<]{3,200})\s{0,4}</"),
    _row("password", "PASS ", r"(?:^|\n|> |C: )PASS[ \t]+:?(?P<v>[^\s\"']{5,100})(?=\r?\n|$)", "typed"),
    _row(
        "password",
        "dentify |DENTIFY ",
        r"(?i:identify)[ \t]+(?:\w{2,30}[ \t]+)?(?P<v>[^\s\"']{6,100})(?=\r?\n|$)",
        "typed",
    ),
)
"""Secrets that are passed to commands."""

CODE = (
    _row(
        "secret",
        "jwt.|Hmac|hmac|HMAC|Fernet|cookie|Cipher|JWT.",
        r"(?:\b(?:jwt|JWT)\.(?:sign|verify|encode|decode)|createHmac|createCipheriv|createDecipheriv|hash_hmac|(?:hmac|HMAC)\.new|Fernet|cookieParser|"
        r"cookieSession)[ \t]{0,2}\((?:[\w.\[\]\"'{}: -]{1,40},[ \t]*){0,2}[bu]?[\"'](?P<v>[^\"'\n]{6,200})[\"']",
        "typed",
    ),
    _row(
        "api key",
        "lient(|Api(|API(|SDK(|Sdk(|Bot(|nalytics(|earch(|Service(|rovider(|Wallet(",
        r"(?:Client|Api|API|SDK|Sdk|Bot|[Aa]nalytics|[Ss]earch|Service|Provider|Wallet)\([ \t]{0,2}(?:[\"'][^\"'\n]{2,100}[\"'],[ \t]{0,4}){0,2}"
        r"[\"'](?P<v>[\w+/=-]{24,200})[\"']",
        "random",
    ),
    _row(
        "api key",
        "lient(|Api(|API(",
        r"(?:Client|Api|API)\([ \t]{0,2}[\"'](?P<v>[A-Za-z0-9_+/=-]{32,200})[\"'],",
        "random",
    ),
    _row(
        "secret",
        "Buffer.from|fromhex(|Decode",
        r"(?:Buffer\.from|fromhex|HexDecode|DecodeString)\([ \t]{0,2}[\"'](?P<v>(?:[0-9a-fA-F]{32}){1,4})[\"']",
    ),
    _row("private key", "accounts", r"\baccounts\b[^\n\[]{0,10}\[[\s\"']{0,20}(?P<v>0x[0-9a-fA-F]{64})"),
    _row("private key", "[", r"\[[ \t]{0,4}(?P<v>\d{1,3}(?:,[ \t]?\d{1,3}){31,127})\]", "bytes"),
    _row(
        "token",
        "-oauth",
        r"\"\w{2,12}-oauth\"[ \t]*:[ \t]*\{\s{0,20}\"[\w.-]{3,60}\"[ \t]*:[ \t]*\"(?P<v>[\w-]{20,200})\"",
    ),
    _row(
        "key",
        "username",
        r"\"username\"[ \t]*:[ \t]*\"[^\"\n]{1,60}\"[ \t]*,[ \t]*\"key\"[ \t]*:[ \t]*\"(?P<v>[\w-]{16,200})\"",
    ),
    _row(
        "key",
        '"Key"|"key"',
        r"\"(?i:jwt|auth|token|signing)\w{0,12}\"[ \t]*:[ \t]*\{\s{0,20}\"(?i:key|secret|signingkey)\"[ \t]*:[ \t]*\"(?P<v>[^\"\n]{12,200})\"",
        "typed",
    ),
    _row("secret", '"Value"', r"\"Value\"[ \t]*:[ \t]*\"(?P<v>[^\"\n]{4,400})\"(?=[^{}]{0,200}\"SecureString\")"),
    _row("secret", "=", r"=[\"']?(?P<v>[A-Za-z0-9_+-]{32,200}+={0,2})(?=[\s\"',;]|$)", "env"),
    _row("key", "igning", r"[Ss]igning_?[Kk]ey\\?[\"']?[ \t]*[:=][ \t]*\\?[\"'](?P<v>[\w+/=-]{20,400})", "random"),
    _row(
        "password",
        "IDENTIFIED ",
        r"IDENTIFIED[ \t]+(?:WITH[ \t]+\S{1,40}[ \t]+)?(?:BY|AS)(?:[ \t]+PASSWORD)?[ \t]+[\"'](?P<v>[^\"'\n]{3,200})",
    ),
    _row(
        "password",
        "dentified ",
        r"[Ii]dentified[ \t]+(?:with[ \t]+\S{1,40}[ \t]+)?(?:by|as)(?:[ \t]+password)?[ \t]+[\"'](?P<v>[^\"'\n]{3,200})",
        "typed",
    ),
    _row(
        "password",
        "PASSWORD |assword |phrase ",
        r"(?i:\bpass(?:word|phrase))[ \t]+(?:is[ \t]+)?[\"'](?P<v>[^\"'\n]{4,200})[\"']",
        "typed or phrase",
    ),
    _row(
        "password",
        "connect|Connect|asic_auth|asicAuth|login|Login|redential|uth|PDO(|mysqli|UserPassword|set_password|access_token(|lient(",
        r"(?:[Bb]asic_?[Aa]uth\w{0,12}|\b[Ll]ogin|[Cc]redentials?|\b[Aa]uth(?:enticate)?|PlainAuth|plain_auth|getConnection|Client|"
        r"\b\w{0,10}[Cc]onnect|PDO|mysqli|UserPassword|set_password|set_access_token)[ \t]{0,2}(?:=[ \t]{0,2})?(?:\(|(?<=_auth )(?=[\"']))"
        r"(?P<v>(?:Some\(|[^()\n]){5,400})",
        "arguments",
    ),
    _row(
        "key",
        "AES|DES|SecretKeySpec|SignedString|SecurityKey|hmacSha|SecretKey(|importKey|_encrypt|_ENCRYPT|_decrypt|_DECRYPT|Cipher|SecretString",
        r"(?:\b(?:AES|DES3?|ChaCha20\w{0,9})\.new|SecretKeySpec|SignedString|SymmetricSecurityKey|hmacShaKeyFor|createSecretKey|importKey|SecretString(?:::new|::from)?|"
        r"(?:AES|aes|pgp_sym|DES)_(?:encrypt|decrypt|ENCRYPT|DECRYPT)|SecretBox|Cipher)\((?:[\w.\[\]()&-]{0,40},?[ \t]{0,4}){0,2}"
        r"[bu]?[\"'](?P<v>[^\"'\n]{6,200})[\"']",
        "typed",
    ),
    _row(
        "password",
        "btoa(|b64encode(|base64|Buffer.from(|Base64",
        r"(?:btoa|b64encode|Buffer\.from|encodeToString|b64encode64|strict_encode64)\([bu]?[\"'][\w.@-]{1,60}:(?P<v>[^\"'\n]{4,120})[\"']|"
        r"(?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?[\w.@-]{1,60}:(?P<w>[^\s\"'|]{4,120})[\"']?[ \t]*\|[ \t]*(?:openssl[ \t]+)?base64",
        "typed",
    ),
    _row(
        "password",
        "@",
        r"(?<![\w/.@:+-])(?!mailto|npm|git|image|file)[\w.-]{1,40}:(?P<v>[^\s:@/\"'`<>(){}]{6,100})@(?!sha\d)(?:(?:tcp|unix)\(|[A-Za-z][\w-]{0,40}(?:\.[\w-]{1,40}){0,5}[:/]|\d{1,3}\.\d)",
        "strong",
    ),
    _row("password", ";P:", r"WIFI:[^\n]{0,80}?;P:(?P<v>[^;\n]{4,100});"),
    _row(
        "password",
        "form-data",
        r"name=\"[\w.\[-]{0,40}(?i:passw|secret|token|pwd|api_?key)[\w.\]-]{0,20}\"[^\n]{0,80}\r?\n(?:[^\r\n]{1,80}\r?\n){0,2}\r?\n(?P<v>[^\r\n]{4,400})",
    ),
    _row(
        "secret",
        "--body|--value|--data|--secret-string|--secret-value|--string-value|--from-literal",
        r"(?i:secrets?|keyvault|put-parameter|variable)\b[^\n]{0,160}?--(?:body|value|data|secret-string|secret-value|string-value)[ \t=][\"']?(?P<v>[^\s\"']{6,400})",
        "typed",
    ),
    _row(
        "secret",
        "--from-literal",
        r"--from-literal[ =][\"']?(?!\w{0,20}user)[\w.-]{1,60}=[\"']?(?P<v>[^\s\"']{6,400})",
        "typed",
    ),
    _row(
        "password",
        "-command|-cmd",
        r"--pass\w{0,10}-(?:command|cmd)[ =][\"']?(?:echo|printf)[ \t]+[\"']?(?P<v>[^\s\"']{4,120})",
    ),
    _row("password", "]:", r"\[[\w.-]{3,80}\]:\d{2,5}[ \t]+[\w.@+-]{1,80}:(?P<v>[^\s:]{4,120})(?=\s|$)"),
    _row(
        "password",
        "chap|ppp|pptp|l2tp|secrets",
        r"(?:^|\n)[\"']?[\w.@-]{1,40}[\"']?[ \t]+(?:\*|\w{1,20})[ \t]+[\"']?(?P<v>[^\s\"'*]{6,80})[\"']?[ \t]+\*[ \t]*(?=\n|$)",
        "strong",
    ),
    _row("password", "assword(|ASSWORD(", r"(?i:password)\([ \t]{0,4}[\"'](?P<v>[^\"'\n]{4,200})[\"']", "typed"),
    _row("auth", '"auth', r"\"auth\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9+/]{8,}={0,2})\\?\""),
    _row(
        "private key",
        '"kty|\\"kty',
        r"\"kty\\?\"(?:(?![{}])[^\n]){0,3000}?\"(?:d|k)\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9_-]{20,})",
    ),
    _row(
        "private key",
        '"kty|\\"kty',
        r"\"(?:d|k)\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[A-Za-z0-9_-]{20,})\\?\"(?:(?![{}])[^\n]){0,3000}?\"kty",
    ),
    _row(
        "secret",
        '"value|"Value',
        r"\"[Vv]alue\\?\"[ \t]*:[ \t]*\\?\"(?P<v>[^\"\n\\]{4,400})\\?\"[ \t]*,\s{0,40}\\?\"(?:[Nn]ame|[Kk]ey)\\?\"[ \t]*:[ \t]*\\?\"[\w.-]{0,60}(?i:passw|secret|token|api_?key|_key|passphrase|credential)[\w.-]{0,20}\\?\"",
    ),
    _row(
        "secret",
        "value=",
        r"\bvalue=\"(?P<v>[^\"\n<>]{4,400})\"[ \t]{1,8}(?:name|key|id)=\"[\w.-]{0,60}(?i:passw|secret|token|api_?key|passphrase|credential)[\w.-]{0,20}\"",
    ),
    _row(
        "secret",
        "value:",
        r"\bvalue:[ \t]*[\"']?(?P<v>[^\s\"']{4,400})[\"']?\s{0,40}\n[ \t-]{0,40}(?:name|key):[ \t]*[\"']?[\w.-]{0,60}(?i:passw|secret|token|api_?key|passphrase|credential)[\w.-]{0,20}[\"']?(?:\s|$)",
    ),
    _row(
        "password",
        "%22%3A|%3D|%22%3a",
        r"(?i:passw|pwd|secret|token|api_?key|passphrase)\w{0,16}(?:%22%3A(?:%20|\+)?%22|%3D)(?P<v>[^\s%&\"']{4,400})",
        "",
        re.IGNORECASE,
    ),
)
"""Secrets in code, statements and data."""

HASHES = (
    _row("password hash", "$krb5", r"\$krb5\w{2,10}\$(?P<v>[^\s\"']{20,4000})"),
    _row("password hash", "::", r"::[\w.-]{0,40}:[0-9a-fA-F]{16}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{20,1000})"),
    _row("password hash", "$2", r"\$2[abxy]\$\d{2}\$(?P<v>[./A-Za-z0-9]{50,60})"),
    _row(
        "password hash",
        "$",
        r"\$(?<![\w$]\$)(?:1|5|6|7|y|gy|md5|sha1|apr1|P|H|2|scrypt|8|9|14|sm3)\$(?P<v>[^\s:\"'`,;<>]{16,300})",
    ),
    _row("password hash", "$argon2", r"\$argon2\w{1,2}\$(?P<v>[^\s:\"'`;<>]{20,300})"),
    _row(
        "password hash",
        "pbkdf2|scrypt|bcrypt_",
        r"\b(?:pbkdf2|scrypt|bcrypt)[_:]?\w{0,10}[$:]\d[\w:]{0,20}\$(?P<v>[^\s\"'`;<>]{20,300})",
    ),
    _row(
        "password hash",
        "}",
        r"\{(?:S?SHA(?:256|384|512)?|S?MD5|CRYPT|PBKDF2\w{0,10}|ARGON2)\}(?P<v>[A-Za-z0-9+/=$.]{16,300})",
    ),
    _row("password hash", "SCRAM-SHA", r"SCRAM-SHA-\d{1,3}\$(?P<v>\d{1,8}:[A-Za-z0-9+/=$:]{30,400})"),
    _row("password hash", ":::", r"(?<!\w)[\w.$-]{1,40}:\d{1,6}:(?P<v>[0-9a-fA-F]{32}:[0-9a-fA-F]{32}):::"),
    _row("password hash", "'md5|\"md5", r"[\"']md5(?P<v>[0-9a-f]{32})[\"']"),
)
"""Hashes of passwords."""

OUTPUTS = (
    _row(
        "secret",
        "phrase|nemonic|NEMONIC|PHRASE|eed words",
        r"(?i:(?:recovery|seed|backup|secret|wallet)[ _-]?(?:phrase|words)|mnemonic)[\w \t()\"'-]{0,40}[:=]?\s{0,8}[\"']?(?P<v>(?:(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8}[ ,\n\t]{1,6}){11,23}(?:\d{1,2}[.)][ \t]*)?[a-z]{3,8})",
    ),
    _row(
        "secret",
        "ode",
        r"(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[^\n]{0,60}\n+(?P<v>(?:(?=[^\n]{0,60}\d)[ \t>*•-]{0,8}(?:\d{1,2}[.)][ \t]+)?[A-Za-z0-9]{4,10}(?:[ -][A-Za-z0-9]{3,10}){0,4}[ \t]{0,8}(?:\n|$)){1,20})",
    ),
    _row(
        "secret",
        "ode",
        r"(?i:recovery|backup|scratch|emergency|one-time)[ _-]codes?[ \t]{0,4}[\"']?[:=][ \t]*\[?(?P<v>[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?(?:[ ,]{1,3}[\"']?(?=[\w-]{0,16}\d)[A-Za-z0-9-]{6,16}[\"']?){0,20})",
    ),
    _row(
        "pin",
        "PIN|PUK|CVV|CVC|OTP",
        r"\b(?:PIN|PUK\d?|OTP|CVV|CVC)\b[^\n:=]{0,40}(?:[:=]|\bis\b)[ \t]*(?P<v>\d{4,12})(?!\w)",
    ),
    _row(
        "pin",
        "code|combination",
        r"(?i:door|gate|alarm|safe|lock|garage|entry)[ -]?(?:code|pin|combination)\b[^\n:=\d]{0,20}(?:[:=]|\bis\b)[ \t]*(?P<v>[\d*#-]{4,12})",
    ),
    _row(
        "pin",
        "code",
        r"(?i:verification|security|one-time|login|2fa|mfa|sms|auth(?:entication)?)[ -]code(?:[^\n:=]{0,30}[:=]|[^\n:=]{0,30}\bis\b)[ \t]*(?P<v>(?:G-)?\d{3}[ -]?\d{3,5})(?!\w)",
    ),
    _row(
        "credential",
        "creds|redential|ogin|/p",
        r"(?i:\bcreds?|\bcredentials?|\blogins?|\bl/p|\bu/p)\b[^\n:=]{0,50}?(?:[:=]|\b(?:is|are)\b)[ \t]*[`\"'(]?[\w.@+-]{2,40}[ \t]{0,2}[:/|,][ \t]{0,2}[`\"']?(?P<v>[^\s`\"']{6,100})",
        "typed",
    ),
    _row(
        "credential",
        " with | as | using ",
        r"\b(?:log ?in|sign in|connect|ssh)[ \t]+(?:with|as|using)[ \t]+[`\"']?[\w.@-]{2,40}[ \t]{0,2}[:/][ \t]{0,2}(?P<v>[^\s`\"']{6,100})",
        "typed",
    ),
    _row(
        "credential",
        "admin|root|user",
        r"\b(?:admin|root|administrator|user(?:name)?)[ \t]{1,2}(?:/|with)[ \t]{1,2}(?:pw |pass |password )?(?P<v>[^\s`\"',/]{6,100})",
        "typed",
    ),
    _row(
        "password",
        ":54|:64|:65|:2506|:*:",
        r"(?:^|\n)(?:[\w-]{1,60}(?:\.[\w-]{1,60}){0,6}|\*):(?:\d{4,5}|\*):(?:[\w-]{1,60}|\*):(?:[\w.-]{1,60}|\*):(?P<v>[^\s:]{5,200})(?=\r?\n|$)",
    ),
    _row("secret", "secret_id", r"\bsecret_id[ \t:=\"]{1,40}(?P<v>[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})"),
    _row(
        "secret",
        "setup key|secret key|app password|uthenticator",
        r"(?:setup key|secret key|app password|[Aa]uthenticator)[^\n:]{0,40}?(?::|\bis\b)[ \t]*(?P<v>[a-zA-Z0-9]{4}(?:[ -][a-zA-Z0-9]{4}){3,7})(?!\w)",
    ),
    _row(
        "password",
        "phrase",
        r"(?i:pass[ ]?phrase)[ \t]{0,4}(?::|=|\bis\b)[ \t]*(?P<v>[a-z]{3,12}(?:[ -][a-z0-9]{2,12}){3,7})[ \t]*(?=\n|$)",
        "typed or phrase",
    ),
    _row(
        "password",
        "as the |as pass|as my |as your ",
        r"(?:use|try|set|with|enter)[ \t]+[`\"']?(?P<v>[^\s`\"']{6,80})[`\"']?[ \t]+as[ \t]+(?:(?:the|your|my|a)[ \t]+)?(?:\w{1,12}[ \t]+)?(?:password|passphrase|pin)\b",
        "typed",
    ),
    _row("api token", "FlyV1 ", r"FlyV1[ \t]+(?P<v>fm\d[a-z]?_[A-Za-z0-9+/=_,-]{20,})"),
    _row(
        "session",
        "ession-",
        r"(?i:session-(?:id|token))\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?(?P<v>[\w+/=.-]{16,400})",
        "random",
    ),
    _row("secret", "private-", r"/private-(?P<v>[0-9a-f]{32})\b"),
    _row("telegram token", ":AA", r"(?<!\d)(?P<v>\d{8,10}:AA[A-Za-z0-9_-]{32,34})(?![\w-])"),
    _row("firebase key", ":APA91b", r"(?<![\w-])(?P<v>[A-Za-z0-9_-]{8,30}:APA91b[A-Za-z0-9_-]{60,200})"),
    _row("azure secret", "Q~", r"(?<![\w~.-])(?P<v>[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34})"),
    _row("azure key", "JQQJ9", r"(?<![A-Za-z0-9])(?P<v>[A-Za-z0-9]{40,60}JQQJ9[A-Za-z0-9]{5,})"),
    _row(
        "azure key",
        "+A",
        r"(?<![A-Za-z0-9+/])(?P<v>[A-Za-z0-9+/]{40,80}\+A(?:STt|EhC|CDb|RSS|MC|zSe)[A-Za-z0-9+/]{4,12}={0,2})",
    ),
    _row("terraform token", ".atlasv1.", r"(?<!\w)(?P<v>[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,})"),
    _row("mail key", "-us", r"(?<![0-9a-f])(?P<v>[0-9a-f]{32}-us\d{1,2})(?!\w)"),
    _row("airtable token", "pat", r"pat(?<!\wpat)(?P<v>[A-Za-z0-9]{14}\.[0-9a-f]{64})(?!\w)"),
    _row("asana token", "1/|2/", r"[12]/(?<![\w/][12]/)(?P<v>\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32})(?!\w)"),
    _row(
        "api key",
        "_live|_prod|_secret|_sec|_sk|_pat|_token|_api|_key|_tok|-live|-prod|-secret|-sk-|-pat-|-token|-api|-key|_test",
        r"(?<![\w-])(?!pk)[a-z][a-z0-9]{1,14}[_-](?:(?:live|prod|test|secret|sec|sk|pat|token|api|key|tok)[_-]){1,2}(?P<v>[A-Za-z0-9]{20,200})(?![\w-])",
        "dense",
    ),
    _row("1password key", "A3-", r"(?<![\w-])(?P<v>A3-[A-Z0-9]{6}(?:-[A-Z0-9]{5,11}){4,5})(?![\w-])"),
    _row("license key", "_mmk", r"(?<!\w)(?P<v>[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)(?!\w)"),
    _row("salesforce session", "00D", r"(?<!\w)(?P<v>00D[A-Za-z0-9]{12}![\w.]{60,200})"),
    _row("client secret", "_secret_", r"(?<!\w)(?P<v>(?:pi|seti|cs)_[A-Za-z0-9_]{10,40}_secret_[A-Za-z0-9]{16,60})"),
    _row("twitch token", "oauth:", r"(?<!\w)oauth:(?P<v>[a-z0-9]{30})(?!\w)"),
    _row("vault token", "s.", r"s\.(?<![\w.]s\.)(?P<v>[A-Za-z0-9]{24})(?![\w.])", "random"),
    _row("kubeadm token", "join", r"\bjoin\b[^\n]{0,200}--token[ =](?P<v>[a-z0-9]{6}\.[a-z0-9]{16})"),
    _row(
        "wallet key",
        "wif|WIF|rivate|wallet|itcoin|btc|BTC|key",
        r"(?<![A-Za-z0-9])(?P<v>[5KL][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        "random",
    ),
)
"""Secrets in prose and in the output of programs, and keys with a mark inside."""

PROMPTS = ("$ ", "# ", "% ", "❯ ", "➜ ", "> ")
"""What stands before a command at a prompt."""
PRINTING_COMMAND = re.compile(
    r"(?:^|\n)[ \t]*+(?:[\w.@:~/ -]{0,60}[$#%❯➜>]|PS [^\n>]{0,60}>)[ \t]+(?:sudo[ \t]+)?(?:"
    r"(?:pass(?:[ \t]+show)?|gopass(?:[ \t]+show)?|op[ \t]+(?:read|item[ \t]+get)|python3?[ \t]+-c[^\n]{0,60}(?:secrets|token|password|uuid4|urandom)|head[ \t]+-c[^\n]{0,40}random|bw[ \t]+get|vault[ \t]+(?:kv[ \t]+get|read|token)|chamber[ \t]+read|"
    r"gh[ \t]+auth[ \t]+token|glab[ \t]+auth|gcloud[ \t]+auth[ \t]+(?:application-default[ \t]+)?print|gcloud[ \t]+secrets|az[ \t]+keyvault|"
    r"az[ \t]+account[ \t]+get-access-token|aws[ \t]+secretsmanager|aws[ \t]+ssm|aws[ \t]+ecr[ \t]+get-login-password|heroku[ \t]+config:get|"
    r"heroku[ \t]+auth:token|security[ \t]+find-|secret-tool[ \t]+lookup|kubectl[ \t][^\n]{0,120}(?:create[ \t]+token|secret)|"
    r"oc[ \t]+whoami[ \t]+-t|consul[ \t]+kv[ \t]+get|etcdctl[ \t]+get|doppler[ \t]+secrets|infisical[ \t]+secrets|"
    r"openssl[ \t]+rand|pwgen|apg\b|mkpasswd|htpasswd|diceware|wg[ \t]+gen(?:key|psk)|age-keygen|uuidgen[ \t]*#|"
    r"rails[ \t]+(?:secret|credentials)|bin/rails[ \t]+secret|rake[ \t]+secret|keybase|lpass[ \t]+show|keepassxc-cli)\b[^\n]{0,200}|"
    r"(?:cat|less|more|head|tail|type|xxd|base64|Get-Content|gc)[ \t][^\n]{0,120}"
    r"(?:passw|secret|\.key\b|token|credential|pgpass|htpasswd|shadow|\.env\b|api[_-]?key|cookie|auth|_rsa|_ed25519)[^\n]{0,60}|"
    r"(?:echo|printenv|print|env[ \t]+\|[ \t]*grep|printf|Write-Host)[ \t][^\n]{0,60}(?i:passw|secret|token|_key|apikey|pwd|credential|_pass\b|_pat\b)[^\n]{0,60}|"
    r"(?:terraform|tofu|pulumi)[ \t][^\n]{0,60}(?i:passw|secret|token|key|credential)[^\n]{0,60}|"
    r"[^\n]{0,120}(?:psk|--show-secrets|--reveal|-w0?|base64[ \t]+(?:-d|-D|--decode))(?:[ \t][^\n]{0,80})?"
    r")\n(?P<output>[^\n]{6,4000})"
)
"""A command at a prompt that prints a secret, and the first line of its output."""

CONTEXT_PATTERNS = (*HEADERS, *COMMANDS, *CODE, *HASHES, *OUTPUTS)
