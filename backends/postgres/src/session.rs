//! A transaction on a connection, on which a snapshot or a transaction is built.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::future::{self, Future};
use std::sync::Arc;

use bytes::Bytes;
use tokio_postgres::{Error as PgError, Row};

use super::connection::Connection;
use super::sql::Sql;
use super::watch::Notice;
use super::{Shared, error};
use keyloom::backend::Span;
use keyloom::{Entry, Error, KeyBuf, MAX_KEY_BYTES, Order, Result, TransactionState};
use keyloom_remote::{Buffer, Fetched, LARGEST_PAGE, Outcome, PAGE_BYTES, Session, WriteSession};

/// Buffered writes are sent before the commit if they exceed this number of bytes.
// A higher limit keeps more in the memory of the client; a lower one adds round trips to large
// transactions.
const MOST_BYTES_WAITING: usize = 1 << 20;
/// Buffered writes are also sent before the commit if there are more than this number.
const MOST_WRITES_WAITING: usize = 10_000;

/// A transaction on the server. It begins with the first statement, in the same message.
#[derive(Debug)]
pub struct PostgresSession {
    shared: Arc<Shared>,
    /// `Some` until the session is dropped. Boxed, since the snapshots of other stores are small.
    connection: Option<Box<Connection>>,
    state: Cell<State>,
    kind: Kind,
    /// Whether a write was sent. If not, a lost connection leaves no doubt about the outcome.
    has_written: Cell<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The server has no transaction yet.
    Fresh,
    Open,
    /// The server refuses further statements of this transaction.
    Failed {
        restart: bool,
    },
    /// The state of the server is unknown or no longer usable, so the connection is closed and not
    /// given back to the pool.
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
            // `REPEATABLE READ` gives a snapshot without conflicts: see the module.
            Self::Snapshot => "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY",
            Self::Transaction => "BEGIN TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        }
    }
}

/// The server, or a proxy, closed the connection of an idle transaction.
#[derive(Debug, thiserror::Error)]
#[error("it was closed while the transaction was idle")]
struct ClosedMeanwhile;

/// The error of every statement after a failed statement.
#[derive(Debug, thiserror::Error)]
#[error("an earlier statement of this transaction failed; begin another one")]
struct FailedBefore;

impl PostgresSession {
    pub(super) fn new(shared: Arc<Shared>, connection: Connection, kind: Kind) -> Self {
        let connection = Some(Box::new(connection));
        let (state, has_written) = (Cell::new(State::Fresh), Cell::new(false));
        Self { shared, connection, state, kind, has_written }
    }

    /// Makes the server take the snapshot that all reads of the session use.
    pub(super) fn look(&self) -> Result<()> {
        self.ask(|connection| connection.client().batch_execute(&self.shared.sql.look))
    }

    fn connection(&self) -> Result<&Connection> {
        match &self.connection {
            Some(connection) => Ok(connection),
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

    /// Waits for one answer of the server. The first request also begins the transaction, in the
    /// same message.
    fn ask<'c, T, F>(&'c self, request: impl FnOnce(&'c Connection) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, PgError>>,
    {
        self.refuse_if_failed()?;
        let connection = self.connection()?;
        let is_fresh = self.state.get() == State::Fresh;
        let begin =
            async { if is_fresh { connection.begin(self.kind.begin()).await } else { Ok(false) } };
        let request = request(connection);
        // Polled in their order on the wire: `biased` polls the first future first.
        let both = async { tokio::join!(biased; begin, request) };
        // Until the answer arrives, the state is unknown.
        self.state.set(State::Astray { restart: false });
        match self.wait(connection, both) {
            Outcome::Refused(error) => Err(error),
            Outcome::Answered((Ok(is_listened), Ok(answer))) => {
                if is_listened {
                    self.shared.notices.is_listened();
                }
                self.state.set(State::Open);
                Ok(answer)
            }
            Outcome::Answered((Err(error), _) | (_, Err(error))) => {
                Err(self.failed(error::of_statement(error, &self.shared.link)))
            }
            Outcome::TimedOut => Err(self.silent(self.shared.link.silent())),
        }
    }

    /// Waits for the answer to one message.
    fn wait<F: Future>(&self, connection: &Connection, request: F) -> Outcome<F::Output> {
        let link = &self.shared.link;
        if let Err(error) = link.refuse_fork() {
            return Outcome::Refused(error);
        }
        link.waited_also(1);
        let answer = connection.wait(link.deadline(), request);
        answer.map_or(Outcome::TimedOut, Outcome::Answered)
    }

    fn failed(&self, error: Error) -> Error {
        let restart = error.is_retryable();
        self.state.set(match error {
            // The connection leads to another server than at the opening, such as a read-only
            // replica.
            Error::ReadOnly => State::Astray { restart },
            _ => State::Failed { restart },
        });
        error
    }

    fn silent(&self, error: Error) -> Error {
        self.state.set(State::Astray { restart: error.is_retryable() });
        error
    }

    /// Begins the transaction with a message of its own. A write may be sent only after `BEGIN`
    /// succeeded: if `BEGIN` failed and the write did not, the write would be committed as a
    /// separate transaction.
    fn begin(&self) -> Result<()> {
        if self.state.get() == State::Fresh {
            return self.ask(|_| future::ready(Ok(())));
        }
        self.refuse_if_failed()
    }

    /// Sends all writes of `buffer` and, with `commit`, the commit after them. Each deleted range
    /// but the last takes a message of its own. All other writes and the commit are in one message.
    fn send(&self, buffer: Buffer, commit: bool) -> Result<Sent> {
        // Checked before the connection is used: in a forked child, the connection belongs to the
        // parent.
        self.shared.link.refuse_fork()?;
        let connection = self.connection()?;
        if connection.is_closed() {
            // The server cannot have received a commit, so the outcome is certain.
            return Err(self.failed(self.shared.link.lost(ClosedMeanwhile)));
        }
        let sql = &self.shared.sql;
        self.has_written.set(self.has_written.get() || !buffer.is_empty());
        let (cleared, keys) = buffer.into_parts();
        let mut cleared: Vec<Span> = cleared.into_spans().collect();
        let last_cleared = cleared.pop();
        for span in cleared {
            self.ask(|connection| async move { clear(connection, sql, &span).await })?;
        }
        self.state.set(State::Astray { restart: false });
        let request = write(connection, sql, last_cleared, &keys, commit);
        match self.wait(connection, request) {
            Outcome::Answered(sent) => Ok(sent),
            Outcome::Refused(error) => Err(error),
            Outcome::TimedOut if commit && self.has_written.get() => {
                Err(self.silent(self.shared.link.silent_at_commit()))
            }
            Outcome::TimedOut => Err(self.silent(self.shared.link.silent())),
        }
    }

    /// Notifies the waits of this and other processes of a commit. An error here does not change
    /// the outcome of the commit.
    fn announce(&self, notice: Notice) {
        if let (Some(statement), Ok(connection)) = (&notice.statement, self.connection())
            && !connection.send_notice(statement)
        {
            self.state.set(State::Astray { restart: false });
        }
        self.shared.notices.committed(notice);
    }

    /// Interprets the answers to a commit.
    fn committed(&self, Sent { written, committed }: Sent) -> Result<()> {
        let link = &self.shared.link;
        let has_written = self.has_written.get();
        let continues =
            |error: &PgError| error.as_db_error().is_some_and(|answer| !error::is_fatal(answer));
        // A commit that was refused or rolled back also ends the transaction. An additional
        // ROLLBACK would cause a warning in the server's log for each conflict: 53,213 lines in one
        // campaign.
        let has_ended = match &committed {
            Some(Ok(())) => true,
            Some(Err(error)) => continues(error),
            None => false,
        };
        let error = self.failed(match (written, committed) {
            (Ok(()), Some(Ok(()))) => {
                self.state.set(State::Fresh);
                return Ok(());
            }
            // The write failed, so a commit after it was a rollback.
            (Err(refused), Some(_)) if continues(&refused) => error::of_statement(refused, link),
            (Err(refused), None) => error::of_statement(refused, link),
            // The commit was refused, or the connection broke and the commit may have arrived.
            (Err(error), Some(_)) | (Ok(()), Some(Err(error))) if has_written => {
                error::of_commit(error, link)
            }
            (Err(error), Some(_)) | (Ok(()), Some(Err(error))) => error::of_statement(error, link),
            (Ok(()), None) => Error::Backend(FailedBefore.into()),
        });
        if has_ended && matches!(self.state.get(), State::Failed { .. }) {
            self.state.set(State::Fresh);
        }
        Err(error)
    }
}

/// The outcome of the writes, and of the commit after them if it was sent.
struct Sent {
    written: Result<(), PgError>,
    committed: Option<Result<(), PgError>>,
}

/// Sends writes and a commit without waiting for answers in between.
async fn write(
    connection: &Connection,
    sql: &Sql,
    cleared: Option<Span>,
    keys: &BTreeMap<KeyBuf, Option<Bytes>>,
    commit: bool,
) -> Sent {
    let deleted: Vec<&[u8]> =
        keys.iter().filter(|(_, value)| value.is_none()).map(|(key, _)| &key[..]).collect();
    let put = keys.iter().filter_map(|(key, value)| Some((&key[..], &value.as_ref()?[..])));
    let (put_keys, put_values): (Vec<&[u8]>, Vec<&[u8]>) = put.unzip();
    // If a write fails before it is sent, the commit after it must not be sent.
    let held_back = Cell::new(false);
    let or_hold_back = |done: Result<(), PgError>| {
        held_back.set(held_back.get() || done.is_err());
        done
    };
    let clearing = async {
        or_hold_back(match &cleared {
            Some(span) => clear(connection, sql, span).await,
            None => Ok(()),
        })
    };
    let deleting = async {
        or_hold_back(match deleted.is_empty() {
            true => Ok(()),
            false => Connection::execute(connection, &sql.delete, &[&deleted]).await,
        })
    };
    let putting = async {
        or_hold_back(match put_keys.is_empty() {
            true => Ok(()),
            false => Connection::execute(connection, &sql.put, &[&put_keys, &put_values]).await,
        })
    };
    let committing = async {
        match commit && !held_back.get() {
            true => Some(connection.client().batch_execute("COMMIT").await),
            false => None,
        }
    };
    // Every statement was prepared when the connection was opened, so each future sends its message
    // at its first poll. The messages are therefore sent in this order.
    let (cleared, deleted, put, committed) =
        tokio::join!(biased; clearing, deleting, putting, committing);
    Sent { written: cleared.and(deleted).and(put), committed }
}

async fn clear(connection: &Connection, sql: &Sql, span: &Span) -> Result<(), PgError> {
    let statement = sql.clear(span.end.is_some());
    match &span.end {
        Some(end) => {
            Connection::execute(connection, statement, &[&&span.start[..], &&end[..]]).await
        }
        None => Connection::execute(connection, statement, &[&&span.start[..]]).await,
    }
}

/// A copy of the bytes of a column.
fn bytes(row: &Row, column: usize) -> Result<Bytes, PgError> {
    row.try_get::<_, &[u8]>(column).map(Bytes::copy_from_slice)
}

fn pairs(rows: &[Row]) -> Result<Vec<Entry<Bytes>>, PgError> {
    rows.iter().map(|row| Ok((bytes(row, 0)?, bytes(row, 1)?))).collect()
}

/// Groups rows by the number of their span. Spans are numbered from 1.
fn by_span(rows: &[Row], spans: usize, limit: usize) -> Result<Vec<Fetched>, PgError> {
    let mut fetched: Vec<Fetched> =
        (0..spans).map(|_| Fetched { entries: Vec::new(), more: false }).collect();
    let (mut value_bytes, mut last_position) = (0, 0);
    for row in rows {
        let position = usize::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0).saturating_sub(1);
        let (key, value) = (bytes(row, 1)?, bytes(row, 2)?);
        value_bytes += value.len();
        last_position = position;
        if let Some(of_span) = fetched.get_mut(position) {
            of_span.entries.push((key, value));
            of_span.more = of_span.entries.len() == limit;
        }
    }
    if rows.len() >= LARGEST_PAGE || value_bytes >= PAGE_BYTES {
        // The answer was cut in this span, so the spans after it were not read.
        fetched.iter_mut().skip(last_position).for_each(|cut| cut.more = true);
    }
    Ok(fetched)
}

impl Session for PostgresSession {
    // The spans are parameters of one query. A lower limit adds round trips; a higher one keeps
    // more rows in memory, since all pages of a query arrive together.
    const MOST_SPANS: usize = 1_024;

    fn values(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let sql = &self.shared.sql;
        if let [key] = keys {
            let get = |connection| async move {
                Connection::query(connection, &sql.get, &[key])
                    .await?
                    .first()
                    .map(|row| bytes(row, 0))
                    .transpose()
            };
            return self.ask(get).map(|value| vec![value]);
        }
        let get_many = |connection| async move {
            pairs(&Connection::query(connection, &sql.get_many, &[&keys]).await?)
        };
        let found: HashMap<Bytes, Bytes> = self.ask(get_many)?.into_iter().collect();
        Ok(keys.iter().map(|key| found.get(*key).cloned()).collect())
    }

    fn fetch(&self, span: &Span, order: Order, limit: usize) -> Result<Fetched> {
        let statement = self.shared.sql.entries(order, span.end.is_some());
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let fetch = |connection| async move {
            let rows = match &span.end {
                Some(end) => {
                    Connection::query(connection, statement, &[&&span.start[..], &&end[..], &most])
                        .await
                }
                None => Connection::query(connection, statement, &[&&span.start[..], &most]).await,
            };
            pairs(&rows?)
        };
        let entries = self.ask(fetch)?;
        let bytes: usize = entries.iter().map(|(_, value)| value.len()).sum();
        Ok(Fetched { more: entries.len() == limit || bytes >= PAGE_BYTES, entries })
    }

    fn fetch_many(&self, spans: &[Span], limit: usize) -> Result<Vec<Fetched>> {
        // Greater than every key, so that each span has an end for the index.
        const BEHIND_ALL: &[u8] = &[0xFF; MAX_KEY_BYTES + 1];
        let sql = &self.shared.sql;
        let starts: Vec<&[u8]> = spans.iter().map(|span| &span.start[..]).collect();
        let ends: Vec<&[u8]> =
            spans.iter().map(|span| span.end.as_deref().unwrap_or(BEHIND_ALL)).collect();
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        self.ask(|connection| async move {
            let rows =
                Connection::query(connection, &sql.entries_of_many, &[&starts, &ends, &most])
                    .await?;
            by_span(&rows, spans.len(), limit)
        })
    }

    fn count(&self, span: &Span) -> Result<Option<u64>> {
        let statement = self.shared.sql.count(span.end.is_some());
        let count = |connection| async move {
            let rows = match &span.end {
                Some(end) => {
                    Connection::query(connection, statement, &[&&span.start[..], &&end[..]]).await
                }
                None => Connection::query(connection, statement, &[&&span.start[..]]).await,
            };
            rows?.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))
        };
        self.ask(count).map(|count| Some(count.cast_unsigned()))
    }
}

impl WriteSession for PostgresSession {
    fn relieve(&mut self, buffer: &mut Buffer) -> Result<()> {
        if buffer.bytes() <= MOST_BYTES_WAITING && buffer.len() <= MOST_WRITES_WAITING {
            return Ok(());
        }
        self.begin()?;
        let sent = self.send(std::mem::take(buffer), false)?;
        let failed = |error| self.failed(error::of_statement(error, &self.shared.link));
        sent.written.map_err(failed)?;
        self.state.set(State::Open);
        Ok(())
    }

    fn commit(self, buffer: Buffer, state: &TransactionState) -> Result<()> {
        if buffer.is_empty() && self.state.get() == State::Fresh {
            return Ok(());
        }
        self.begin()?;
        let has_sent_more = self.has_written.get();
        let notice = match has_sent_more || !buffer.is_empty() {
            true => self.shared.notices.notice(&buffer, state, has_sent_more),
            false => None,
        };
        let sent = self.send(buffer, true)?;
        self.committed(sent)?;
        notice.into_iter().for_each(|notice| self.announce(notice));
        Ok(())
    }

    fn must_restart(&self) -> bool {
        matches!(
            self.state.get(),
            State::Failed { restart: true } | State::Astray { restart: true }
        )
    }
}

impl Drop for PostgresSession {
    /// Gives the connection back to the pool without waiting for the answer to the rollback. Closes
    /// the connection if it is no longer usable.
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let pool = &self.shared.pool;
        if self.shared.link.refuse_fork().is_err() {
            // A forked child must neither write to the connection of its parent nor wait for the
            // pool.
            return;
        }
        let is_usable = match self.state.get() {
            State::Fresh => true,
            State::Open | State::Failed { .. } => !connection.is_closed() && connection.roll_back(),
            State::Astray { .. } => false,
        };
        match is_usable {
            true => pool.give_back(*connection),
            false => pool.close(*connection),
        }
    }
}
