//! A connection while a snapshot or a transaction has it.

use std::cell::Cell;
use std::collections::HashMap;
use std::future::{self, Future};
use std::sync::Arc;

use bytes::Bytes;
use deadpool_postgres::{ClientWrapper, Object};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error as PgError, Row};

use super::{Shared, error};
use crate::remote::{Buffer, Fetched, Outcome, Pair, Session, Span, WriteSession};
use crate::{Error, Order, Result};

/// Writes that wait are sent ahead of the commit when they are this many bytes,
const MOST_BYTES_WAITING: usize = 1 << 20;
/// or this many.
const MOST_WRITES_WAITING: usize = 10_000;

/// A transaction at the server. It begins with the first statement, and in the same message.
#[derive(Debug)]
pub struct PostgresSession {
    shared: Arc<Shared>,
    /// There until it is dropped.
    client: Option<Object>,
    state: Cell<State>,
    kind: Kind,
    /// Whether a write was sent: else a lost connection leaves nothing in doubt.
    has_written: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The server knows of no transaction.
    Fresh,
    Open,
    /// The server takes nothing more in this transaction.
    Failed {
        restart: bool,
    },
    /// Nobody knows what the server is doing.
    Astray {
        restart: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Snapshot,
    Transaction,
}

impl Kind {
    fn begin(self) -> &'static str {
        match self {
            // One moment, and no conflict: see the module.
            Self::Snapshot => "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Transaction => "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE READ WRITE",
        }
    }
}

/// The error of everything behind a statement that failed.
#[derive(Debug, thiserror::Error)]
#[error("an earlier statement of this transaction failed; begin another one")]
struct FailedBefore;

impl PostgresSession {
    pub(super) fn new(shared: Arc<Shared>, client: Object, kind: Kind) -> Self {
        let client = Some(client);
        let (state, has_written) = (Cell::new(State::Fresh), Cell::new(false));
        Self { shared, client, state, kind, has_written }
    }

    /// Makes the server fix the moment that is read.
    pub(super) fn look(&self) -> Result<()> {
        self.ask(|client| async move { client.batch_execute(&self.shared.sql.look).await })
    }

    fn client(&self) -> Result<&ClientWrapper> {
        match &self.client {
            Some(client) => Ok(client),
            None => Err(Error::Backend(FailedBefore.into())),
        }
    }

    fn refuse_if_failed(&self) -> Result<()> {
        match self.state.get() {
            State::Fresh | State::Open => Ok(()),
            State::Failed { restart: true } | State::Astray { restart: true } => {
                Err(Error::Conflict { what: "an earlier statement".into() })
            }
            State::Failed { .. } | State::Astray { .. } => Err(Error::Backend(FailedBefore.into())),
        }
    }

    /// Waits for one answer of the server. The first time, the transaction begins in the same message.
    fn ask<'c, T, F>(&'c self, request: impl FnOnce(&'c ClientWrapper) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, PgError>>,
    {
        self.refuse_if_failed()?;
        let client = self.client()?;
        let is_fresh = self.state.get() == State::Fresh;
        let begin =
            async { if is_fresh { client.batch_execute(self.kind.begin()).await } else { Ok(()) } };
        let request = request(client);
        // In their order on the wire: `biased` asks the first one first.
        let both = async { tokio::join!(biased; begin, request) };
        match self.shared.link.wait(both) {
            Outcome::Answered((Ok(()), Ok(answer))) => {
                self.state.set(State::Open);
                Ok(answer)
            }
            Outcome::Answered((Err(error), _) | (_, Err(error))) => {
                Err(self.failed(error::of_statement(error, &self.shared.link)))
            }
            Outcome::TimedOut => Err(self.silent(self.shared.link.silent())),
        }
    }

    fn failed(&self, error: Error) -> Error {
        self.state.set(State::Failed { restart: error.is_retryable() });
        error
    }

    fn silent(&self, error: Error) -> Error {
        self.state.set(State::Astray { restart: error.is_retryable() });
        error
    }

    /// Begins with a message of its own. Before a write the beginning must be known: if it failed
    /// and the write did not, the write would be a transaction by itself.
    fn begin(&self) -> Result<()> {
        if self.state.get() == State::Fresh {
            return self.ask(|_| future::ready(Ok(())));
        }
        self.refuse_if_failed()
    }

    /// Sends all writes of `buffer` and, with `commit`, the commit behind them, in one message.
    fn send(&self, buffer: Buffer, commit: bool) -> Result<Sent> {
        let sql = &self.shared.sql;
        self.has_written.set(self.has_written.get() || !buffer.is_empty());
        let (cleared, keys) = buffer.into_parts();
        let mut cleared: Vec<Span> = cleared.into_iter().collect();
        let last_cleared = cleared.pop();
        for span in cleared {
            self.ask(|client| async move { clear(client, sql, &span).await })?;
        }
        let (mut put_keys, mut put_values, mut deleted) = (Vec::new(), Vec::new(), Vec::new());
        for (key, value) in &keys {
            match value {
                Some(value) => {
                    put_keys.push(key.as_slice());
                    put_values.push(&value[..]);
                }
                None => deleted.push(key.as_slice()),
            }
        }
        let client = self.client()?;
        let clearing = async {
            match &last_cleared {
                Some(span) => clear(client, sql, span).await,
                None => Ok(()),
            }
        };
        let deleting = async {
            match deleted.is_empty() {
                true => Ok(()),
                false => execute(client, &sql.delete, &[&deleted]).await,
            }
        };
        let putting = async {
            match put_keys.is_empty() {
                true => Ok(()),
                false => execute(client, &sql.put, &[&put_keys, &put_values]).await,
            }
        };
        let committing =
            async { if commit { client.batch_execute("COMMIT").await } else { Ok(()) } };
        let all = async { tokio::join!(biased; clearing, deleting, putting, committing) };
        Ok(match self.shared.link.wait(all) {
            Outcome::TimedOut => Sent::Silent,
            Outcome::Answered((clearing, deleting, putting, committed)) => {
                Sent::Answered { written: clearing.and(deleting).and(putting), committed }
            }
        })
    }

    /// What a commit's answers mean.
    fn committed(
        &self,
        written: Result<(), PgError>,
        committed: Result<(), PgError>,
    ) -> Result<()> {
        let link = &self.shared.link;
        match (written, committed) {
            (Ok(()), Ok(())) => {
                self.state.set(State::Fresh);
                Ok(())
            }
            // The server refused a write, so what came behind it was a rollback.
            (Err(refused), _) if refused.as_db_error().is_some_and(|told| !is_fatal(told)) => {
                Err(self.failed(error::of_statement(refused, link)))
            }
            // The connection broke somewhere; the commit may have arrived.
            (Err(error), _) | (Ok(()), Err(error)) => {
                Err(self.failed(match self.has_written.get() {
                    true => error::of_commit(error, link),
                    false => error::of_statement(error, link),
                }))
            }
        }
    }
}

/// What became of writes.
enum Sent {
    Silent,
    Answered { written: Result<(), PgError>, committed: Result<(), PgError> },
}

/// The server ends the connection with this error.
fn is_fatal(told: &tokio_postgres::error::DbError) -> bool {
    use tokio_postgres::error::Severity;
    !matches!(told.parsed_severity(), Some(Severity::Error) | None)
}

type Parameters<'p> = [&'p (dyn ToSql + Sync)];

async fn execute(client: &ClientWrapper, sql: &str, with: &Parameters<'_>) -> Result<(), PgError> {
    let statement = client.prepare_cached(sql).await?;
    client.execute(&statement, with).await.map(drop)
}

async fn query(
    client: &ClientWrapper,
    sql: &str,
    with: &Parameters<'_>,
) -> Result<Vec<Row>, PgError> {
    let statement = client.prepare_cached(sql).await?;
    client.query(&statement, with).await
}

async fn clear(client: &ClientWrapper, sql: &super::Sql, span: &Span) -> Result<(), PgError> {
    let statement = sql.clear(span.end.is_some());
    match &span.end {
        Some(end) => execute(client, statement, &[&&span.start[..], &&end[..]]).await,
        None => execute(client, statement, &[&&span.start[..]]).await,
    }
}

/// Bytes of a column, out of the message that brought them.
fn bytes(row: &Row, column: usize) -> Result<Bytes, PgError> {
    row.try_get::<_, &[u8]>(column).map(Bytes::copy_from_slice)
}

fn pairs(rows: &[Row]) -> Result<Vec<Pair>, PgError> {
    rows.iter().map(|row| Ok((bytes(row, 0)?, bytes(row, 1)?))).collect()
}

impl Session for PostgresSession {
    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let sql = &self.shared.sql;
        if let [key] = keys {
            let get = |client| async move {
                query(client, &sql.get, &[key]).await?.first().map(|row| bytes(row, 0)).transpose()
            };
            return self.ask(get).map(|value| vec![value]);
        }
        let get_many =
            |client| async move { pairs(&query(client, &sql.get_many, &[&keys]).await?) };
        let found: HashMap<Bytes, Bytes> = self.ask(get_many)?.into_iter().collect();
        Ok(keys.iter().map(|key| found.get(*key).cloned()).collect())
    }

    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched> {
        let statement = self.shared.sql.entries(order, span.end.is_some());
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let fetch = |client| async move {
            let rows = match &span.end {
                Some(end) => query(client, statement, &[&&span.start[..], &&end[..], &most]).await,
                None => query(client, statement, &[&&span.start[..], &most]).await,
            };
            pairs(&rows?)
        };
        let entries = self.ask(fetch)?;
        Ok(Fetched { more: entries.len() == limit, entries })
    }

    fn count(&self, span: &Span) -> Result<u64> {
        let statement = self.shared.sql.count(span.end.is_some());
        let count = |client| async move {
            let rows = match &span.end {
                Some(end) => query(client, statement, &[&&span.start[..], &&end[..]]).await,
                None => query(client, statement, &[&&span.start[..]]).await,
            };
            rows?.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))
        };
        self.ask(count).map(i64::cast_unsigned)
    }
}

impl WriteSession for PostgresSession {
    fn relieve(&mut self, buffer: &mut Buffer) -> Result<()> {
        if buffer.bytes() <= MOST_BYTES_WAITING && buffer.len() <= MOST_WRITES_WAITING {
            return Ok(());
        }
        self.begin()?;
        let link = &self.shared.link;
        match self.send(std::mem::take(buffer), false)? {
            Sent::Silent => Err(self.silent(link.silent())),
            Sent::Answered { written, .. } => {
                written.map_err(|error| self.failed(error::of_statement(error, link)))
            }
        }
    }

    fn commit(self, buffer: Buffer) -> Result<()> {
        if buffer.is_empty() && self.state.get() == State::Fresh {
            return Ok(());
        }
        self.begin()?;
        let link = &self.shared.link;
        match self.send(buffer, true)? {
            Sent::Answered { written, committed } => self.committed(written, committed),
            Sent::Silent if self.has_written.get() => Err(self.silent(link.silent_at_commit())),
            Sent::Silent => Err(self.silent(link.silent())),
        }
    }

    fn must_restart(&self) -> bool {
        matches!(
            self.state.get(),
            State::Failed { restart: true } | State::Astray { restart: true }
        )
    }
}

impl Drop for PostgresSession {
    /// Gives the connection back, without waiting for the rollback.
    fn drop(&mut self) {
        let Some(client) = self.client.take() else { return };
        match self.state.get() {
            State::Fresh => drop(client),
            State::Open | State::Failed { .. } if !client.is_closed() => {
                self.shared.link.spawn(async move {
                    if client.batch_execute("ROLLBACK").await.is_err() {
                        discard(client);
                    }
                });
            }
            _ => discard(client),
        }
    }
}

/// Closes a connection; the pool opens another one in its place.
fn discard(client: Object) {
    drop(Object::take(client));
}
