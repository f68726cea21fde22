//! Notifies the waits of other sessions of commits, by `NOTIFY` and `LISTEN`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use keyloom::Result;
use keyloom::backend::{ChangedKeys, CommitSignal, Watch};
use keyloom_remote::Buffer;
use tokio_postgres::SimpleQueryMessage;

use super::connection::Connection;
use super::sql::Engine;
use super::{Shared, error};

/// How often a store without listeners checks whether there are any. Until then, their polls find
/// its commits.
const CHECK_FOR_LISTENERS: Duration = Duration::from_secs(1);

/// The largest number of keys in a notification, which has at most 8,000 bytes.
const MOST_SENT: usize = 400;

/// How often the thread that listens checks whether it is still needed.
const CHECK: Duration = Duration::from_millis(100);

/// The pause before a second attempt to listen.
const RETRY: Duration = Duration::from_secs(1);

/// The notifications of one table.
#[derive(Debug)]
pub(super) struct Notices {
    pub(super) signal: CommitSignal,
    channel: String,
    /// The key of the advisory lock that every listening session holds in shared mode.
    lock: i64,
    is_supported: bool,
    opened: Instant,
    /// The milliseconds since `opened` at which the next commit checks for listeners.
    next_check: AtomicU64,
    is_listened: AtomicBool,
}

impl Notices {
    pub(super) fn new(table: &str, engine: Engine, signal: CommitSignal) -> Self {
        let mut name = ChangedKeys::none();
        name.note(table.as_bytes());
        let name = name.to_string();
        Self {
            signal,
            lock: u64::from_str_radix(&name, 16).unwrap_or_default().cast_signed(),
            channel: format!("keyloom_{name}"),
            is_supported: engine == Engine::PostgreSql,
            opened: Instant::now(),
            next_check: AtomicU64::default(),
            is_listened: AtomicBool::default(),
        }
    }

    /// The statement to send after a commit: it notifies if a session listens, and returns whether
    /// one does. `None` if none did a moment ago, so that a store without waits pays nothing.
    // Not within the transaction: `NOTIFY` takes a lock for its commit, so that commits with
    // notifications would wait for each other's fsync.
    pub(super) fn statement(&self, buffer: &Buffer, has_sent_more: bool) -> Option<String> {
        if !self.is_supported || !(self.is_listened.load(Relaxed) || self.is_check_due()) {
            return None;
        }
        let mut changed = ChangedKeys::none();
        let is_short = buffer.writes().take(MOST_SENT + 1).count() <= MOST_SENT;
        match !has_sent_more && is_short && buffer.deleted_ranges().next().is_none() {
            true => buffer.writes().for_each(|(key, _)| changed.note(key)),
            false => changed.note_any(),
        }
        let Self { lock, channel, .. } = self;
        Some(format!(
            "SELECT CASE WHEN pg_try_advisory_xact_lock({lock}) THEN false \
             ELSE pg_notify('{channel}', '{changed}')::text = '' END"
        ))
    }

    fn is_check_due(&self) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let (now, due) = (millis(self.opened.elapsed()), self.next_check.load(Relaxed));
        let next = now.saturating_add(millis(CHECK_FOR_LISTENERS));
        now >= due && self.next_check.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// Notes the answer to the [`statement`](Notices::statement).
    pub(super) fn answered(&self, answer: &[SimpleQueryMessage]) {
        let is_listened = answer.iter().any(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0) == Some("t"),
            _ => false,
        });
        self.is_listened.store(is_listened, Relaxed);
    }

    /// Passes a notification to the waits of this process.
    pub(super) fn receive(signal: &CommitSignal, payload: &str) {
        let Ok(changed) = payload.parse();
        signal.notify(changed);
    }

    /// Listens on a thread, on a connection of its own, while threads or tasks of this process
    /// wait.
    pub(super) fn listen(shared: &Arc<Shared>) {
        if shared.notices.is_supported {
            shared.notices.signal.watch(|| {
                let shared = Arc::downgrade(shared);
                move |watch: &Watch| listen(&shared, watch)
            });
        }
    }
}

fn listen(shared: &Weak<Shared>, watch: &Watch) {
    while watch.is_needed() {
        if let Some(Ok(connection)) = shared.upgrade().map(|shared| listening(&shared)) {
            watch.set_complete(true);
            while watch.is_needed() && !connection.is_closed() {
                connection.wait_for_data(CHECK);
            }
            watch.set_complete(false);
            connection.close();
        }
        let failed = Instant::now();
        while watch.is_needed() && failed.elapsed() < RETRY {
            thread::sleep(CHECK);
        }
    }
}

/// A connection that listens. A read-only replica refuses this.
fn listening(shared: &Shared) -> Result<Connection> {
    let Notices { channel, lock, .. } = &shared.notices;
    let connection = shared.connector.connect(&shared.link)?;
    let listen = format!("LISTEN {channel}; SELECT pg_advisory_lock_shared({lock})");
    let deadline = shared.link.deadline();
    match connection.wait(deadline, connection.client().batch_execute(&listen)) {
        Some(Ok(())) => Ok(connection),
        Some(Err(refused)) => Err(error::of_statement(refused, &shared.link)),
        None => Err(shared.link.silent()),
    }
}
