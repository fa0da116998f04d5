"""The tables and their migrations, in one text for all databases.

`{id}`, `{blob}` and `{words}` are replaced by each database's own SQL. A released migration is never edited; every
change is a new migration. The tenant (`owner`) is in every table and index, so no query depends on an id alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from foldline.errors import LedgerTooNew
from foldline.ledger.connections import Connection


class Migration(NamedTuple):
    """The change from one schema version to the next: SQL statements separated by semicolons."""

    name: str
    sql: str


LEDGER = """
CREATE TABLE owners (id {id}, name TEXT NOT NULL UNIQUE);

CREATE TABLE sessions (
    id {id}, owner BIGINT NOT NULL REFERENCES owners, name TEXT NOT NULL, made_at DOUBLE PRECISION NOT NULL,
    UNIQUE (owner, name));

CREATE TABLE branches (
    id {id}, owner BIGINT NOT NULL, session BIGINT NOT NULL REFERENCES sessions, name TEXT NOT NULL,
    origin BIGINT, origin_seq BIGINT NOT NULL, made_at DOUBLE PRECISION NOT NULL,
    UNIQUE (owner, session, name));

CREATE TABLE strands (
    id {id}, owner BIGINT NOT NULL, branch BIGINT NOT NULL, base BIGINT, start BIGINT NOT NULL);

CREATE TABLE messages (
    id {id}, owner BIGINT NOT NULL, strand BIGINT NOT NULL, position BIGINT NOT NULL,
    key {blob} NOT NULL, trace {blob} NOT NULL, at DOUBLE PRECISION NOT NULL, body {blob} NOT NULL, meta {blob});
CREATE UNIQUE INDEX messages_place ON messages (owner, strand, position);
CREATE UNIQUE INDEX messages_key ON messages (owner, key);
CREATE INDEX messages_trace ON messages (owner, trace);

CREATE TABLE remarks (
    id {id}, owner BIGINT NOT NULL, strand BIGINT NOT NULL, position BIGINT NOT NULL,
    at DOUBLE PRECISION NOT NULL, meta {blob} NOT NULL);
CREATE INDEX remarks_place ON remarks (owner, strand, position, id);

CREATE TABLE entries (
    owner BIGINT NOT NULL, branch BIGINT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, mark BIGINT NOT NULL,
    strand BIGINT, length BIGINT NOT NULL, tip {blob} NOT NULL, key {blob} NOT NULL,
    at DOUBLE PRECISION NOT NULL, op TEXT NOT NULL, cut BIGINT, body {blob},
    PRIMARY KEY (owner, branch, seq));
CREATE INDEX entries_marks ON entries (owner, branch, seq) WHERE kind <> 'append';

CREATE TABLE jobs (
    owner BIGINT NOT NULL, branch BIGINT NOT NULL, name TEXT NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL,
    fence BIGINT NOT NULL, holder TEXT NOT NULL, until_at DOUBLE PRECISION NOT NULL,
    deadline_at DOUBLE PRECISION NOT NULL, failures BIGINT NOT NULL, at DOUBLE PRECISION NOT NULL, body {blob},
    PRIMARY KEY (owner, branch, name, seq));

CREATE TABLE events (
    id {id}, owner BIGINT NOT NULL, branch BIGINT NOT NULL, kind TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL, body {blob});
CREATE INDEX events_branch ON events (owner, branch, id)
"""

DOCUMENTS = """
CREATE TABLE documents (
    message BIGINT PRIMARY KEY, owner BIGINT NOT NULL, strand BIGINT NOT NULL, position BIGINT NOT NULL,
    size BIGINT NOT NULL, prompt BIGINT NOT NULL);
{words}
"""
"""Creates the table with the data that recall needs about each message.

So recall need not read the messages themselves.
"""
WAITING = "CREATE INDEX jobs_wanted ON jobs (at) WHERE kind = 'wanted'"

UNREAD = """
CREATE TABLE unread (
    owner BIGINT NOT NULL, strand BIGINT NOT NULL, start BIGINT NOT NULL, stop BIGINT NOT NULL, size BIGINT NOT NULL,
    PRIMARY KEY (owner, strand, start));
INSERT INTO unread (owner, strand, start, stop, size)
    SELECT owner, strand, MIN(position), MAX(position) + 1, 256 * COUNT(*) FROM messages GROUP BY owner, strand;
DELETE FROM documents;
DROP TABLE words;
{words}
"""
"""Creates the table `unread`: the ranges of messages that are not in the text index yet.

This migration also empties the text index, because it changes the index numbers of terms. So at first the table lists
all messages.
"""

SEGMENTS = """
ALTER TABLE strands RENAME TO segments;
ALTER TABLE messages RENAME COLUMN strand TO segment;
ALTER TABLE remarks RENAME COLUMN strand TO segment;
ALTER TABLE entries RENAME COLUMN strand TO segment;
ALTER TABLE documents RENAME COLUMN strand TO segment;
ALTER TABLE unread RENAME COLUMN strand TO segment
"""
"""Renames strands to segments (runs of messages that branches share)."""

MIGRATIONS: tuple[Migration, ...] = (
    Migration("ledger", LEDGER),
    Migration("words", DOCUMENTS),
    Migration("waiting", WAITING),
    Migration("unread", UNREAD),
    Migration("segments", SEGMENTS),
)
"""All migrations in order, numbered from 1."""

RECORD = (
    "CREATE TABLE IF NOT EXISTS migrations "
    "(number BIGINT PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)"
)


def migrate(connection: Connection, dialect: Mapping[str, str], at: float) -> None:
    """Apply the next migration in the caller's transaction. Call this function only if `pending` returns True."""
    number = version(connection) + 1
    migration = MIGRATIONS[number - 1]
    for statement in migration.sql.format_map(dialect).split(";"):
        connection.run(statement)
    connection.run("INSERT INTO migrations (number, name, at) VALUES (?, ?, ?)", (number, migration.name, at))


def pending(connection: Connection) -> bool:
    """Whether migrations are missing. Raises `LedgerTooNew` if a newer version of foldline wrote the schema."""
    found = version(connection)
    if found > len(MIGRATIONS):
        what = f"the ledger has schema {found}, this foldline supports up to {len(MIGRATIONS)}"
        raise LedgerTooNew(what, hint="update foldline")
    return found < len(MIGRATIONS)


def version(connection: Connection) -> int:
    """The number of the newest applied migration."""
    return int(connection.run("SELECT COALESCE(MAX(number), 0) FROM migrations")[0][0])
