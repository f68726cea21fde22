//! The SQL statements, which PostgreSQL, CockroachDB and YugabyteDB all accept.
//!
//! The engines differ only in the creation of a table with ordered keys, and in the settings of a
//! session.

use std::time::Duration;

use keyloom::backend::refused_name;
use keyloom::{Order, Result};
use keyloom_remote::{LARGEST_PAGE, PAGE_BYTES};

/// The engines that support the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Engine {
    /// PostgreSQL itself, the tested engine.
    PostgreSql,
    /// CockroachDB.
    CockroachDb,
    /// YugabyteDB.
    YugabyteDb,
}

impl Engine {
    /// The engine, from the result of `select version()`.
    pub(super) fn of(version: &str) -> Self {
        match version {
            version if version.starts_with("CockroachDB") => Self::CockroachDb,
            version if version.contains("-YB-") => Self::YugabyteDb,
            _ => Self::PostgreSql,
        }
    }

    /// The statements that set up each session.
    pub(super) fn settings(self, timeout: Duration) -> String {
        let server_timeout_ms = statement_timeout(timeout).as_millis();
        let planner = match self {
            // Each statement should use the one index. On a small or new table without statistics,
            // the planner would prefer a sequential scan. A serializable transaction that has read
            // the whole table conflicts with every writer.
            Self::PostgreSql => {
                "; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off"
            }
            Self::CockroachDb | Self::YugabyteDb => "",
        };
        format!("SET statement_timeout = {server_timeout_ms}{planner}")
    }
}

/// The server's time-out of a statement, for a client that waits for `timeout`. It is a little
/// shorter, so that the client receives the server's answer: after a time-out of the client, the
/// statement might still be executed.
pub(super) fn statement_timeout(timeout: Duration) -> Duration {
    (timeout - timeout / 8).max(Duration::from_millis(1))
}

/// The statements on one table.
#[derive(Debug)]
pub(super) struct Sql {
    pub(super) create: String,
    /// Reads nothing, but makes the server take the snapshot.
    pub(super) look: String,
    pub(super) get: String,
    pub(super) get_many: String,
    pub(super) put: String,
    pub(super) delete: String,
    ascending: [String; 2],
    descending: [String; 2],
    /// `$1` are the starts, `$2` the ends, `$3` is the limit of each span.
    pub(super) entries_of_many: String,
    count: [String; 2],
    clear: [String; 2],
}

impl Sql {
    /// The statements on `table`, a name that has passed [`check_table`].
    pub(super) fn new(table: &str, engine: Engine) -> Self {
        // Without `ASC` YugabyteDB distributes keys by hash, and every range reads the whole table.
        let order = if engine == Engine::YugabyteDb { " ASC" } else { "" };
        let t = format!("\"{table}\"");
        // The statement with and without an end: `$1` is the start, and the next parameter the end.
        let both = |make: &dyn Fn(&str, usize) -> String| {
            [make("key >= $1 AND key < $2", 3), make("key >= $1", 2)]
        };
        let entries = |direction: &str| {
            both(&|span, next| {
                // Ends a page at its limit of bytes, but not before its first row.
                format!(
                    "SELECT key, value FROM (\
                     SELECT key, value, sum(octet_length(value)) OVER (ORDER BY key {direction} ROWS UNBOUNDED PRECEDING) \
                     - octet_length(value) AS before FROM (\
                     SELECT key, value FROM {t} WHERE {span} ORDER BY key {direction} LIMIT ${next}\
                     ) AS page) AS measured WHERE before < {PAGE_BYTES} ORDER BY key {direction}"
                )
            })
        };
        Self {
            create: format!(
                "CREATE TABLE IF NOT EXISTS {t} (key bytea NOT NULL, value bytea NOT NULL, PRIMARY KEY (key{order}))"
            ),
            look: format!("SELECT key, value FROM {t} WHERE key = ''"),
            get: format!("SELECT value FROM {t} WHERE key = $1"),
            get_many: format!("SELECT key, value FROM {t} WHERE key = ANY($1)"),
            put: format!(
                "INSERT INTO {t} (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
                 ON CONFLICT (key) DO UPDATE SET value = excluded.value"
            ),
            delete: format!("DELETE FROM {t} WHERE key = ANY($1)"),
            ascending: entries("ASC"),
            descending: entries("DESC"),
            // The inner limit ends the scan: without it, the server would read all spans even if
            // the answer is cut.
            entries_of_many: format!(
                "SELECT ord, key, value FROM (\
                 SELECT ord, key, value, sum(octet_length(value)) OVER (ORDER BY ord, key ROWS UNBOUNDED PRECEDING) \
                 - octet_length(value) AS before FROM (\
                 SELECT ord, key, value FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS span (low, high, ord) \
                 CROSS JOIN LATERAL (\
                 SELECT key, value FROM {t} WHERE key >= low AND key < high ORDER BY key ASC LIMIT $3\
                 ) AS page ORDER BY ord, key LIMIT {LARGEST_PAGE}\
                 ) AS pages) AS measured WHERE before < {PAGE_BYTES} ORDER BY ord, key"
            ),
            count: both(&|span, _| format!("SELECT count(*) FROM {t} WHERE {span}")),
            clear: both(&|span, _| format!("DELETE FROM {t} WHERE {span}")),
        }
    }

    pub(super) fn entries(&self, order: Order, has_end: bool) -> &str {
        pick(if order == Order::Ascending { &self.ascending } else { &self.descending }, has_end)
    }

    pub(super) fn count(&self, has_end: bool) -> &str {
        pick(&self.count, has_end)
    }

    pub(super) fn clear(&self, has_end: bool) -> &str {
        pick(&self.clear, has_end)
    }

    /// Every statement that takes parameters, to be prepared when a connection is opened.
    pub(super) fn prepared(&self) -> impl Iterator<Item = &str> {
        let pairs = [&self.ascending, &self.descending, &self.count, &self.clear];
        let single = [&self.get, &self.get_many, &self.entries_of_many, &self.put, &self.delete];
        single.into_iter().chain(pairs.into_iter().flatten()).map(String::as_str)
    }
}

fn pick([with_end, without]: &[String; 2], has_end: bool) -> &str {
    if has_end { with_end } else { without }
}

/// Returns an error for anything but a plain table name. Names cannot be bound as parameters, so
/// only plain names may become part of a statement.
pub(super) fn check_table(table: &str) -> Result<()> {
    match is_table(table) {
        true => Ok(()),
        false => Err(refused_name("the table's name", table, TABLE_RULE)),
    }
}

/// The rule for names of tables.
pub(super) const TABLE_RULE: &str =
    "a table's name has 1 to 63 of a-z, 0-9 and _, and does not begin with a digit";

/// Whether `table` is a plain table name.
pub(super) fn is_table(table: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
    let begins_well = table.bytes().next().is_some_and(|byte| !byte.is_ascii_digit());
    begins_well && table.len() <= 63 && table.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

    use super::*;

    #[test]
    fn a_name_that_could_change_a_statement_is_refused() {
        for name in ["", "1a", "A", "a b", "a\"b", "a;drop", "ä", "a.b", "a\0", &"a".repeat(64)] {
            assert!(check_table(name).is_err(), "{name:?}");
        }
        for name in ["a", "_a1", "keyloom", &"a".repeat(63)] {
            assert!(check_table(name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn an_address_in_place_of_a_table_is_not_shown() {
        for name in ["postgres://ada:secret/geo", "ada:secret", "a&password=secret"] {
            let said = check_table(name).map_err(|error| format!("{error} {error:?}"));
            assert!(said.is_err_and(|said| !said.contains("secret")), "{name}");
        }
    }

    #[test]
    fn engines_are_distinguished_by_their_version() {
        let postgres = "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu";
        assert_eq!(Engine::of(postgres), Engine::PostgreSql);
        assert_eq!(Engine::of("CockroachDB CCL v23.1.11 (x86_64)"), Engine::CockroachDb);
        assert_eq!(Engine::of("PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64"), Engine::YugabyteDb);
        assert!(Sql::new("t", Engine::YugabyteDb).create.contains("PRIMARY KEY (key ASC)"));
        assert!(Sql::new("t", Engine::PostgreSql).create.contains("PRIMARY KEY (key)"));
    }
}
