"""The tables, and how an older ledger becomes one of today.

One text for both databases; `{id}` and `{blob}` are the two words they spell differently. A migration is a number, a
name and statements, applied in one transaction with its record. A released migration is never edited: another follows.
Rows are only added. The owner stands in every table and every index, so no query needs to trust a number alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from foldline.errors import LedgerTooNew
from foldline.ledger.connections import Connection

SQLITE, POSTGRES = "sqlite", "postgres"


class Migration(NamedTuple):
    """A step from one schema to the next: statements for both databases, and some for one of them."""

    name: str
    both: str = ""
    only: Mapping[str, str] = {}

    def statements(self, database: str) -> list[str]:
        """What to run on a database, one statement each."""
        text = self.both + ";" + self.only.get(database, "")
        return [statement.strip() for statement in text.split(";") if statement.strip()]


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
    size BIGINT NOT NULL, prompt BIGINT NOT NULL)
"""
"""What recall knows of a message without reading it."""
WORDS = {
    SQLITE: "CREATE VIRTUAL TABLE words USING fts5(terms, content='', detail='none', columnsize=0, tokenize='ascii')",
    POSTGRES: """
        CREATE TABLE words (rowid BIGINT PRIMARY KEY, terms INTEGER[] NOT NULL);
        CREATE INDEX words_terms ON words USING gin (terms)
    """,
}
"""Which messages have a term: terms are numbers here, so each database keeps them the way it does best."""

WAITING = "CREATE INDEX jobs_wanted ON jobs (at) WHERE kind = 'wanted'"
"""What a worker looks for, every few moments."""

UNREAD = """
CREATE TABLE unread (
    owner BIGINT NOT NULL, strand BIGINT NOT NULL, start BIGINT NOT NULL, stop BIGINT NOT NULL, size BIGINT NOT NULL,
    PRIMARY KEY (owner, strand, start));
INSERT INTO unread (owner, strand, start, stop, size)
    SELECT owner, strand, MIN(position), MAX(position) + 1, 256 * COUNT(*) FROM messages GROUP BY owner, strand;
DELETE FROM documents;
DROP TABLE words
"""
"""What the text index has yet to read: at first everything, since terms have other numbers from here on."""

MIGRATIONS: tuple[Migration, ...] = (
    Migration("ledger", LEDGER),
    Migration("words", DOCUMENTS, WORDS),
    Migration("waiting", WAITING),
    Migration("unread", UNREAD, WORDS),
)
"""All migrations in order: the first has number 1."""

RECORD = (
    "CREATE TABLE IF NOT EXISTS migrations "
    "(number BIGINT PRIMARY KEY, name TEXT NOT NULL, at DOUBLE PRECISION NOT NULL)"
)


def migrate(connection: Connection, database: str, column_types: Mapping[str, str], at: float) -> None:
    """Apply the next migration in the caller's transaction. Nothing is left to do when `pending` says so."""
    number = version(connection) + 1
    step = MIGRATIONS[number - 1]
    for statement in step.statements(database):
        connection.run(statement.format_map(column_types))
    connection.run("INSERT INTO migrations (number, name, at) VALUES (?, ?, ?)", (number, step.name, at))


def pending(connection: Connection) -> bool:
    """Whether the tables are older than this foldline; an error when they are newer."""
    found = version(connection)
    if found > len(MIGRATIONS):
        raise LedgerTooNew(
            f"the ledger has schema {found}, this foldline knows {len(MIGRATIONS)}", hint="update foldline"
        )
    return found < len(MIGRATIONS)


def version(connection: Connection) -> int:
    """The number of the newest migration that was applied."""
    found: int = connection.run("SELECT COALESCE(MAX(number), 0) FROM migrations")[0][0]
    return found
