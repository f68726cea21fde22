//! Notifies the waits of other sessions of commits, by `NOTIFY` and `LISTEN`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use keyloom::backend::{ChangedKeys, CommitSignal, Watch};
use keyloom::{Error, Result, TransactionState};
use keyloom_remote::Buffer;

use super::connection::Connection;
use super::sql::Engine;
use super::{Shared, error};

/// How often the commits of a store check whether a session listens, if none is known to. Until a
/// check finds a listener, the listener finds the commits by its polls.
const CHECK_FOR_LISTENERS: Duration = Duration::from_millis(100);

/// How long a store notifies without a check after it found a listener.
const LISTENED: Duration = Duration::from_secs(1);

/// The largest number of keys in a notification, which has at most 8,000 bytes.
const MOST_SENT: usize = 400;

/// How often the thread that listens checks whether it is still needed.
const CHECK: Duration = Duration::from_millis(100);

/// The first and the longest pause before another attempt to listen.
const RETRIES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

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
    /// The milliseconds since `opened` until which commits notify without a check.
    listened_until: AtomicU64,
}

/// The keys of a commit, and the statement that notifies other processes of them.
pub(super) struct Notice {
    changed: ChangedKeys,
    pub(super) statement: Option<String>,
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
            listened_until: AtomicU64::default(),
        }
    }

    /// The notice to send after the commit of `buffer`. `None` if nothing in this process waits, no
    /// other listener is known, and no check for listeners is due.
    // Not within the transaction: `NOTIFY` takes a lock for its commit, so that commits with
    // notifications would wait for each other's fsync.
    pub(super) fn notice(
        &self,
        buffer: &Buffer,
        state: &TransactionState,
        has_sent_more: bool,
    ) -> Option<Notice> {
        let now = millis(self.opened.elapsed());
        let is_listened = now < self.listened_until.load(Relaxed);
        let is_sent = self.is_supported && (is_listened || self.is_check_due(now));
        if !is_sent && self.signal.waiting() == 0 {
            return None;
        }
        let mut changed = ChangedKeys::none();
        let (written, woken) = (buffer.writes().take(MOST_SENT + 1).count(), state.woken().count());
        let is_short = written + woken <= MOST_SENT;
        match !has_sent_more && is_short && buffer.deleted_ranges().next().is_none() {
            true => buffer.writes().for_each(|(key, _)| changed.note(key)),
            false => changed.note_any(),
        }
        changed.note_woken(state);
        let Self { lock, channel, .. } = self;
        let statement = is_sent.then(|| {
            format!(
                "SELECT CASE WHEN pg_try_advisory_xact_lock({lock}) THEN false \
                 ELSE pg_notify('{channel}', '{changed}')::text = '' END"
            )
        });
        Some(Notice { changed, statement })
    }

    fn is_check_due(&self, now: u64) -> bool {
        let due = self.next_check.load(Relaxed);
        let next = now.saturating_add(millis(CHECK_FOR_LISTENERS));
        now >= due && self.next_check.compare_exchange(due, next, Relaxed, Relaxed).is_ok()
    }

    /// Notifies the waits of this process.
    pub(super) fn committed(&self, notice: Notice) {
        self.signal.notify(notice.changed);
    }

    /// Notes that the server had a listener for a [`Notice`].
    pub(super) fn is_listened(&self) {
        let until = millis(self.opened.elapsed() + LISTENED);
        self.listened_until.fetch_max(until, Relaxed);
    }

    /// Passes a notification to the waits of this process.
    pub(super) fn receive(signal: &CommitSignal, payload: &str) {
        let Ok(changed) = payload.parse();
        signal.notify(changed);
    }

    /// Starts a thread that listens for notices of commits on its own connection, as long as
    /// threads or tasks of this process wait for a change.
    pub(super) fn listen(shared: &Arc<Shared>) {
        if shared.notices.is_supported {
            shared.notices.signal.watch(|| {
                let shared = Arc::downgrade(shared);
                move |watch: &Watch| listen(&shared, watch)
            });
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn listen(shared: &Weak<Shared>, watch: &Watch) {
    let mut retry = RETRIES.0;
    while watch.is_needed() {
        match shared.upgrade().map(|shared| listening(&shared)) {
            Some(Ok(connection)) => {
                follow(watch, &connection);
                watch.set_complete(false);
                connection.close();
                retry = RETRIES.0;
            }
            // A replica in recovery refuses to listen.
            None | Some(Err(Error::ReadOnly)) => retry = Duration::MAX,
            Some(Err(_)) => {}
        }
        let failed = Instant::now();
        while watch.is_needed() && failed.elapsed() < retry {
            thread::sleep(CHECK);
        }
        retry = retry.saturating_mul(2).min(RETRIES.1);
    }
}

/// Passes notifications on until no wait needs them, or the connection ends.
fn follow(watch: &Watch, connection: &Connection) {
    // Wakes all listeners. Their polls stay short until every store has checked for listeners.
    watch.set_complete(false);
    let (began, mut is_complete) = (Instant::now(), false);
    while watch.is_needed() && !connection.is_closed() {
        if !is_complete && began.elapsed() > 2 * CHECK_FOR_LISTENERS {
            is_complete = true;
            watch.set_complete(true);
        }
        connection.wait_for_data(CHECK);
    }
}

/// A connection that listens.
fn listening(shared: &Shared) -> Result<Connection> {
    let Notices { channel, lock, .. } = &shared.notices;
    let connection = shared.connector.connect(&shared.link)?;
    let listen = format!("LISTEN {channel}; SELECT pg_advisory_lock_shared({lock})");
    let deadline = shared.link.deadline();
    let refused = match connection.wait(deadline, connection.client().batch_execute(&listen)) {
        Some(Ok(())) => return Ok(connection),
        Some(Err(refused)) => error::of_statement(refused, &shared.link),
        None => shared.link.silent(),
    };
    connection.close();
    Err(refused)
}
