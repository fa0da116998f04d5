"""Patterns for secrets that are passed to a command or printed by one.

To add a pattern, add a row. Each pattern takes linear time, as in `context_patterns.py`.
"""

from __future__ import annotations

import re

from foldline.redact.pattern_rows import command, row

_NO_USER = r"(?:and|or|must|may|can|could|should|shall|will|would|to|then|is|was|has|had|with|by|the|enters?|types?|gives?|sets?)[ \t]"
"""A word that follows `user` in a sentence and is not the name of a user."""

COMMANDS = (
    row(
        "password",
        "-u |-U |--user",
        r"(?<!\S)(?:-[uU]|--user(?:name)?)[ \t=]\S{1,80}(?:[ \t]++[^\s|;]++){0,8}?[ \t]++(?:-[pP]|--pass)[ \t=]{0,2}"
        r"[\"']?(?P<v>[^\s\"'`|;<>]{5,100})",
        "strong or app",
    ),
    row(
        "password",
        "-u|-U|-A|--user|--auth|--creds|--proxy-user",
        r"(?<!\S)(?:-[uUA]|--(?:user|auth|auth-cred|creds|proxy-user))[ \t=]{0,2}(?:"
        r"[\"'][\w.@+/\\-]{0,80}[:%](?P<v>[^\"'\n]{4,100})[\"']|[\w.@+/\\-]{0,80}[:%](?P<w>[^\s\"'`|;<>]{4,100}))",
        "typed or spaced",
    ),
    row("password", "-u", r"(?<!\S)-u[ \t]{0,2}[\"']?(?P<v>[A-Za-z0-9_-]{16,200}):[\w\"' ]", "random"),
    row(
        "password",
        "auth|login|digest",
        r"(?:auth(?<![\w-]auth)|login(?<![\w-]login)|digest(?<![\w-]digest))[ \t]+[\w.-]{1,40}:(?P<v>[^\s\"'`|;<>:]{5,100})",
        "strong",
    ),
    row(
        "password",
        "mc alias set|authorize-account|http-basic.|mc config host add",
        r"(?:mc[ \t]+(?:alias[ \t]+set|config[ \t]+host[ \t]+add)[ \t]+\S{1,60}[ \t]+\S{1,120}|authorize-account|http-basic\.\S{1,60})"
        r"[ \t]+\S{1,80}[ \t]+(?P<v>[^\s\"'`|;<>]{5,100})",
    ),
    command("vault operator unseal|wandb login|heroku auth:login|op signin", r"", "random"),
    command("db2 connect|db2 attach", r"using[ \t]+"),
    command("nmcli", r"password[ \t]+"),
    row(
        "password",
        "nter ",
        r"(?i:enter[ \t]+(?:(?:the|a|new|your)[ \t]+){0,2}pass(?:word|phrase)(?:[ \t]+for[ \t]+[^\n:]{1,60})?)[ \t]*:[ \t]*"
        r"(?P<v>[^\s\"']{5,100})[ \t]*(?=\n|$)",
        "typed",
        words="pass",
    ),
    row(
        "password",
        '"random_password"',
        r"\"random_password\"[^\n]{0,80}\n(?:[^\n]{0,120}\n){0,20}?[ \t]*(?:result|bcrypt_hash)[ \t]*=[ \t]*\"(?P<v>[^\"\n]{4,200})\"",
    ),
    command("signtool|certutil|psexec|sc.exe", r"[-/][pP][ \t]{1,4}"),
    command("schtasks|SCHTASKS", r"/[rR]?[pP][ \t]{1,4}"),
    command("qpdf", r"--encrypt[ \t]+"),
    row(
        "password",
        "mkpasswd|openssl passwd|rclone obscure|wpa_passphrase|dscl",
        r"(?:mkpasswd|openssl passwd|rclone obscure|wpa_passphrase|dscl)(?:[ \t]++[^\s|;>]++){0,8}?[ \t]++"
        r"[\"']?(?P<v>[^\s|;>\"']{5,100})[\"']?(?=[ \t]*(?:$|[\n|;>]))",
        "strong",
    ),
    command("security", r"-[wp][ \t]+", "strong"),
    command("keytool", r"-new[ \t]+"),
    row(
        "password",
        "user",
        rf"user(?<!\wuser)(?:name)?[ \t]+(?!{_NO_USER})[\"']?[\w.@+-]{{1,60}}[\"']?[ \t,]+password[ \t]+[\"']?(?P<v>[^\s\"']{{4,100}})",
        "typed",
        words="pass",
    ),
    row(
        "password",
        "user",
        rf"user(?<!\wuser)(?:name)?[ \t]+(?!{_NO_USER})[\"']?[\w.@+-]{{1,60}}[\"']?[ \t,]+pass[ \t]+[\"']?(?P<v>[^\s\"']{{4,100}})",
        "strong",
        words="pass",
    ),
    command("x11vnc", r"-passwd[ \t]+"),
    row("password", "-setcookie", r"-setcookie[ \t]+(?P<v>\S{8,100})"),
    row("password", "SETUSER| on >", r"(?:SETUSER|\buser)[ \t]+\S{1,40}[^\n]{0,40}?[ \t]>(?P<v>[^\s\"']{4,100})"),
    row(
        "password",
        "LOGIN ",
        r"(?:^|\n|[\w.]{1,8}[ \t])LOGIN[ \t]+[\"']?[\w.@+-]{1,60}[\"']?[ \t]+[\"']?(?P<v>(?!\()[^\s\"']{4,100})(?=[\"'\s]|$)",
        "strong",
    ),
    row("password", "AUTH PLAIN|AUTH LOGIN", r"AUTH[ \t]+(?:PLAIN|LOGIN)[ \t]+(?P<v>[A-Za-z0-9+/=]{12,})"),
    row(
        "password",
        "-server|neighbor",
        r"(?:radius|tacacs|ntp)[-\w]{0,8}[ \t][^\n]{0,60}?\bkey[ \t]+(?:\d[ \t]+)?(?P<v>\S{5,80})",
        "typed",
    ),
    row("password", "ontent", r"Key Content[ \t]*:[ \t]*(?P<v>\S{8,63})"),
    row(
        "password",
        "chpasswd",
        r"chpasswd:\s{1,20}list:[ \t]*\|\s{1,20}(?P<v>\w[\w.-]{0,40}:[^\s:]{4,100}(?:\n[ \t]+\w[\w.-]{0,40}:[^\s:]{4,100}){0,20})",
    ),
    row(
        "password",
        ">",
        r"(?:echo|printf)[ \t]+(?:-[ne]{1,2}[ \t]+)?(?:[\"'](?P<v>[^\"'\n\\]{4,120})[\"']|(?P<w>[^\s\"'|\\]{4,120}))[ \t]*>{1,2}[ \t]*[^\s|;&]{0,80}"
        r"(?i:pass|secret|token|credential|\.key\b)",
        "strong",
        words="echo|printf",
    ),
    row("password", "login ", r"login[ \t]+\S{1,80}\s+password[ \t]+(?P<v>\S{3,200})"),
    command("wget|xh|http|https|httpie", r"(?:-u|--user|-a|--auth|--proxy-user|-U)[ \t=]*[\"']?[^\s:\"']{1,80}:"),
    row(
        "password",
        "curl ",
        r"curl\b(?:(?!curl\b)[^\n]){0,300}?[ \t](?:-u|--user)[ \t=]*[\"']?[^\s:\"']{1,80}:(?P<v>[^\s\"']{3,200})",
    ),
    row(
        "cookie",
        "curl ",
        r"curl\b(?:(?!curl\b)[^\n]){0,300}?[ \t](?:-b|--cookie)[ \t=]*[\"'](?P<v>[^\n\"']{8,4000})",
        "random pairs",
    ),
    row("password", "sshpass", r"sshpass[ \t]+-p[ \t]*[\"']?(?P<v>[^\s\"']{3,200})"),
    command(
        "mysql|mysqldump|mysqladmin|mysqlimport|mysqlsh|mysqlcheck|mariadb|mariadb-dump|xtrabackup", r"-p(?![ \t-])"
    ),
    command("mongo|mongosh|mongodump|mongorestore|mongoexport|mongoimport", r"(?:-p|--password)[ \t=]{1,4}(?!-)"),
    command(
        "docker login|podman login|nerdctl login|helm registry login|oc login|crane auth login|buildah login|skopeo login",
        r"-p[ \t=]{1,4}",
    ),
    command("az login|az acr login|argocd login|oras login", r"(?:-p|--password)[ \t=]{1,4}"),
    command("redis-cli|valkey-cli|keydb-cli", r"(?:-a|--pass)[ \t=]{1,4}"),
    command("sqlcmd|bcp|osql|isql|ipmitool|tsql", r"-P[ \t]*(?!\d{1,5}\b)"),
    command("zip|unzip|zipcloak|7z|7za|7zz|rar|unrar", r"(?:-P[ \t]*|-h?p(?![ \t])|--password[ \t=]{1,4})"),
    command("ldapsearch|ldapmodify|ldapadd|ldappasswd|ldapwhoami|ldapdelete", r"-w[ \t]*"),
    command(
        "smbclient|rpcclient|winexe|mount.cifs|net rpc|smbmap|crackmapexec|nxc",
        r"(?:-U|--user)[ \t=]*[\"']?[^\s%\"']{1,80}%",
    ),
    command("crackmapexec|nxc|smbmap|evil-winrm|hydra|medusa", r"-p[ \t]{1,4}(?!\d{1,5}\b)"),
    command("lftp|ncftp|ncftpput", r"-u[ \t]*[^\s,]{1,80},"),
    command("ncftpput|ncftpget|pg_basebackup", r"-p[ \t]{1,4}(?!\d{1,5}\b)"),
    command("xfreerdp|wfreerdp|rdesktop", r"(?:/p:|-p[ \t]{1,4})"),
    command("snmpwalk|snmpget|snmpset|snmpbulkwalk", r"-[AX][ \t]{1,4}"),
    command("cmdkey", r"/pass:"),
    command("htpasswd", r"-\w{0,5}b\w{0,5}[ \t]+\S{1,200}[ \t]+\S{1,80}[ \t]+"),
    command("oathtool", r"(?:-b[ \t]+|--base32[ \t]+|--totp[ \t]+(?!-))"),
    command("useradd|usermod", r"(?:-p|--password)[ \t=]{1,4}"),
    command(
        "pkcs12|openssl|ssh-keygen",
        r"-(?:N|P|passin|passout|pass|password|k|K|iv)[ \t]{1,4}(?:pass:)?(?!file:|env:|stdin|fd:)",
        "typed",
    ),
    row("password", "pass:", r"(?<![\w-])pass:(?P<v>[^\s\"'`|;]{4,200})"),
    command(
        "cargo login|vault login|ngrok config add-authtoken|ngrok authtoken|snyk auth|sentry-cli login", r"", "random"
    ),
    row(
        "password",
        "echo |printf ",
        r"(?:echo|printf)[ \t]+(?:-[ne]{1,2}[ \t]+)?(?:[\"']%s(?:\\n)?[\"'][ \t]+)?(?:\\?[\"'](?P<v>[^\"'\n\\]{3,120})|(?P<w>[^\s\"'|\\]{3,120}))"
        r"[^\n|]{0,20}\|[ \t]*(?:sudo[ \t]+(?:-\w+[ \t]+)*-S|[^\n|]{0,60}(?:secret|passw|pass-stdin|token|login|kinit|cryptsetup|openconnect|vault|keyring|credential))",
        "typed or phrase",
    ),
    row(
        "password",
        "git config |set -|setx |setenv |Env:|configure set |config set |config:set ",
        r"(?:\bset[ \t]+-\w{1,3}|\bsetx|\bsetenv|Env:|configure[ \t]+set|config[ \t]+set|git[ \t]+config|config:set)(?:[ \t]+--[\w-]{1,12}){0,3}[ \t]*[\w.:-]{0,60}(?i:pass(?:w(?:or)?d|phrase)?|pwd|secret|token|_key|apikey|api[._-]key|credential)\w{0,12}[ \t]+[\"']?(?P<v>[^\s\"']{6,400})",
    ),
    row(
        "password",
        "net user|add_user|change_password",
        r"(?:net user|rabbitmqctl[ \t]+(?:add_user|change_password))[ \t]+\S{1,80}[ \t]+(?P<v>(?![/*])\S{5,100})",
    ),
    row("password", "net use", r"net use\b[^\n]{0,120}?/user:\S{1,80}[ \t]+[\"']?(?P<v>(?![/*])[^\s\"']{4,100})"),
    row("password", "net use", r"net use\b[^\n]{0,120}?[ \t](?P<v>(?![/\\*-])[^\s:]{5,100})[ \t]+/user:", "typed"),
    row(
        "password",
        "oracle:|sqlplus |expdp |impdp ",
        r"(?:oracle:(?:thin|oci):|(?:sqlplus|expdp|impdp)[ \t]+(?:-\w{1,3}[ \t]+)?)[\"']?[\w.$#]{1,40}/(?P<v>[^\s@/\"']{3,100})(?=[@\s\"'])",
    ),
    row("password", "community ", r"(?:snmp-server[ \t]+community|\br[ow]community6?)[ \t]+(?P<v>[^\s\"']{4,100})"),
    row(
        "password",
        "&quot;",
        r"(?i:passw|pwd|secret|token|api_?key|passphrase)\w{0,16}&quot;[ \t]*:[ \t]*&quot;(?P<v>[^&\s]{4,400})",
    ),
    row(
        "password",
        "SecureString",
        r"SecureString[ \t]+(?:-\w{2,12}[ \t]+){0,3}[\"'](?P<v>[^\"'\n]{3,200})|"
        r"[\"'](?P<w>[^\"'\n]{4,200})[\"'][ \t]*\|[ \t]*ConvertTo-SecureString",
    ),
    row(
        "secret",
        "vars set|secret set|secrets set|secret add|secrets add|secret put|secrets put|keyring set|variable set|variables set",
        r"(?:secrets?|keyring|variables?|vars)[ \t:]+(?:set|add|put|create)[ \t]+(?:--?\S{1,40}[ \t]+){0,4}[\"']?[\w.:/-]{2,80}[\"']?"
        r"(?:[ \t]+|=)[\"']?(?P<v>[^\s\"']{6,400})",
        "typed",
    ),
    row(
        "password",
        "snmp|createUser|usm|ospf|standby|vrrp|hsrp|isis|ntp ",
        r"(?i:\b(?:(?:md5[ \t]+)?key-string|md5|sha\d{0,3}|des|3des|aes(?:[ \t-]?(?:128|192|256))?))[ \t]+(?:\d[ \t]+)?[\"']?(?P<v>[^\s\"']{6,64})",
        "typed",
    ),
    row(
        "password",
        "isakmp key|acacs|adius|option key|wireless.|pre-share",
        r"(?:isakmp key|(?:tacacs|radius)[-\w]{0,8}[^\n]{0,60}?[ \t]key|option key|wireless\.[\w.@\[\]-]{1,40}\.key=)[ \t]*(?:[0-9][ \t]+)?"
        r"[\"']?(?P<v>[^\s\"'<>-][^\s\"']{4,80})",
    ),
    row(
        "password",
        "PSK|XAUTH|EAP ",
        r":[ \t]+(?:PSK|XAUTH|EAP)[ \t]+(?:[\"'\w.@-]{1,60}[ \t]+)?[\"'](?P<v>[^\"'\n]{4,200})[\"']",
    ),
    row(
        "password",
        "send ",
        r"(?i:passw\w{0,4}|passphrase|pin)\b[^\n]{0,40}\n?[^\n]{0,40}?\bsend[ \t]+(?:--[ \t]+)?[\"{](?P<v>[^\"\n\\{}$]{3,80})\\[rn]|"
        r"\bsend[ \t]+(?:--[ \t]+)?[\"{](?P<w>[^\s\"\\{}$]{5,80})\\r",
        "typed or phrase",
    ),
    row(
        "password",
        "sp_add|sp_password",
        r"sp_(?:addlinkedsrvlogin|addlogin|password|addapprole)\b(?P<v>[^\n]{5,300})",
        "arguments",
    ),
    row(
        "password",
        "walletpassphrase|encryptwallet|importprivkey|unlockAccount|nlock-",
        r"(?:walletpassphrase(?:change)?|encryptwallet|importprivkey|unlockAccount)[ \t(]+(?:[\w.]{1,60},[ \t]*)?(?:[\"'](?P<v>[^\"'\n]{4,200})|(?P<w>[^\s\"']{6,200}))",
        "typed or phrase",
    ),
    row(
        "password",
        "<<<",
        r"\b(?:sudo|su|kinit|cryptsetup|luks\w{0,10}|zfs|passwd|login|ssh-add|openssl|gpg|vault|load-key|openconnect|mount)\b[^\n<]{0,80}<<<[ \t]*[\"']?(?P<v>[^\s\"']{4,120})",
        "typed",
    ),
    row(
        "password",
        "ser ",
        r"\n[ \t]*user[ \t]+[\w.@-]{1,40}[ \t]+(?P<v>[^\s\"']{5,100})[ \t]*(?=\n)",
        "typed",
        probe=r"user[ \t]+[\w.@-]{1,40}[ \t]+[^\s\"']{5,100}[ \t]*\n",
    ),
    command("swift", r"-K[ \t]+"),
    row(
        "password",
        "<(",
        r"(?i:pass|key|secret|token)\w{0,10}[-\w]{0,10}[ =]<\((?:echo|printf)[ \t]+(?:-n[ \t]+)?[\"']?(?P<v>[^\s\"')]{4,120})",
    ),
    row(
        "password",
        "passwd",
        r"(?:echo|printf)[ \t]+(?:-[ne]{1,2}[ \t]+)?[\"'](?P<v>[^\"'\n]{4,160})[\"'][ \t]*\|[ \t]*(?:sudo[ \t]+)?(?:ch)?passwd\b",
    ),
    row(
        "password",
        "logon |connect |CONNECT |conn ",
        r"(?:\.logon[ \t]+(?:[\w.]{1,40}/)?[\w.]{1,40},(?P<v>[^\s\"';]{3,100})|\b(?i:conn(?:ect)?)[ \t]+[\w.$#]{1,40}/(?P<w>[^\s@/\"';,]{3,100})@\w)",
    ),
    row(
        "password",
        "login|user|account|Login|User",
        r"\b(?:login|user(?:name)?|account)[ \t]+\S{1,80}[ \t]*\n[ \t]*pass(?:word|wd)?[ \t]+[\"']?(?P<v>[^\s\"']{3,200})[\"']?[ \t]*(?=\n|$)",
        words="pass",
    ),
    row(
        "password",
        "AUTH ",
        r"(?:(?:^|\n)[ \t]*|>[ \t]*|\"|')AUTH[ \t]+(?:[\w.-]{1,60}[ \t]+)?(?P<v>(?!TLS|SSL|LOGIN|PLAIN|CRAM|XOAUTH|NTLM|GSSAPI|[\[(])[^\s\"']{5,200})[\"']?[ \t]*(?=\r?\n|$)",
        "typed",
    ),
    row(
        "password",
        "requirepass|masterauth|bindpw|rootpw|rootdn|user-pass",
        r"\b(?:requirepass|masterauth|bindpw|rootpw)[ \t]+(?:--?\w{1,12}[ \t]+)?[\"']?(?P<v>(?!foobared|-)[^\s\"']{4,200})",
    ),
    row("password", "user-pass", r"<auth-user-pass>\s{1,4}[^\s<]{1,80}\s{1,4}(?P<v>[^\s<]{3,200})\s{0,4}</"),
    row(
        "password",
        "USER ",
        r"USER[ \t]+[^\s\"']{1,80}[ \t]*\r?\n(?:[^\n]{0,200}\n){0,3}?[^\n]{0,12}?\bPASS[ \t]+(?P<v>[^\s\"']{5,100})(?=\r?\n|$)",
        "typed",
        words="pass",
    ),
    row(
        "password",
        "PASS ",
        r"(?<!\w)PASS[ \t]+:?(?P<v>[^\s\"']{5,100})\r?\n[^\n]{0,12}?(?:NICK|USER|CAP)[ \t]",
        "typed",
    ),
    row("password", "PASS ", r"(?:(?:^|\n|> )PASS[ \t]+:|C: PASS[ \t]+)(?P<v>[^\s\"']{5,100})(?=\r?\n|$)", "typed"),
    row("password", "PASS ", r"(?:^|\n|> )PASS[ \t]+(?P<v>[^\s\"']{5,100})(?=\r?\n|$)", "certain"),
    row(
        "password",
        "dentify |DENTIFY ",
        r"(?i:\b(?:nickserv|ns|msg|quote)\b[^\n]{0,40}?\bidentify)[ \t]+(?:\w{2,30}[ \t]+)?(?P<v>[^\s\"']{6,100})(?=\r?\n|$)",
        "typed",
    ),
    row("password", "DENTIFY ", r"IDENTIFY[ \t]+(?:\w{2,30}[ \t]+)?(?P<v>[^\s\"']{6,100})(?=\r?\n|$)", "strong"),
)
"""Secrets that are passed to commands."""

PROMPTS = ("$ ", "# ", "% ", "❯ ", "➜ ", "> ")
"""The characters at the end of a shell prompt, which precede a command."""
PRINTING_COMMAND = re.compile(
    r"[ \t]*+(?:[\w.@:~/ -]{0,60}[$#%❯➜>]|PS [^\n>]{0,60}>)[ \t]+(?:sudo[ \t]+)?(?:"
    r"(?:pass[ \t]+show|pass[ \t]+(?=[\w.@-]{1,60}/)|gopass(?:[ \t]+show)?|op[ \t]+(?:read|item[ \t]+get)|python3?[ \t]+-c[^\n]{0,60}(?:secrets|token|password|uuid4|urandom)|head[ \t]+-c[^\n]{0,40}random|bw[ \t]+get|vault[ \t]+(?:kv[ \t]+get|read|token)|chamber[ \t]+read|"
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
"""A shell prompt with a command that prints a secret, and the first line of the command's output."""
