//! A connection that is driven by the thread that waits for it: see the cost of the
//! [store](super#cost).

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures_util::Stream as _;
use futures_util::future::try_join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{
    Client, Error as PgError, Row, SimpleQueryMessage, SimpleQueryStream, Statement,
};

use super::socket::Socket;
use super::sql::Sql;

/// Reads and writes the socket when polled. Completes when the connection ends.
pub(super) type Driver = Pin<Box<dyn Future<Output = Result<(), PgError>> + Send>>;

/// The parameters of a statement.
pub(super) type Parameters<'p> = [&'p (dyn ToSql + Sync)];

/// A connection with its prepared statements.
pub(super) struct Connection {
    client: Client,
    /// `None` after the connection has ended.
    driver: RefCell<Option<Driver>>,
    socket: Arc<Socket>,
    statements: HashMap<String, Statement>,
    /// The pending answer to a statement that was sent without waiting.
    pending: RefCell<Option<Pending>>,
}

/// The answer to a statement that was sent after the end of a transaction.
enum Pending {
    Rollback(Pin<Box<SimpleQueryStream>>),
    Notice(Pin<Box<SimpleQueryStream>>),
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(client: Client, driver: Driver, socket: Arc<Socket>) -> Self {
        let (driver, pending) = (RefCell::new(Some(driver)), RefCell::default());
        Self { client, driver, socket, statements: HashMap::new(), pending }
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Waits for the output of `request`, a future of the [client](Self::client), and drives the
    /// connection during the wait. Returns `None` at the deadline.
    pub(super) fn wait<F: Future>(&self, deadline: Instant, request: F) -> Option<F::Output> {
        wait(&self.socket, deadline, request, |context| self.advance(context))
    }

    /// Sleeps until data arrives, at most for `time`.
    pub(super) fn wait_for_data(&self, time: Duration) {
        self.socket.wait(Instant::now() + time);
    }

    /// Sends pending requests, and reads the data that has arrived.
    fn advance(&self, context: &mut Context<'_>) {
        let mut driver = self.driver.borrow_mut();
        if driver.as_mut().is_some_and(|driver| driver.as_mut().poll(context).is_ready()) {
            // Without the driver, every request fails, because the driver's end of each channel is
            // dropped.
            *driver = None;
        }
    }

    /// Ends the session on the server, so that the server does not log a broken connection.
    pub(super) fn close(self) {
        let Self { client, driver, socket: _socket, .. } = self;
        drop(client);
        if let Some(mut driver) = driver.into_inner() {
            let _is_ended = driver.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Whether the connection has ended, as far as the data received so far shows.
    pub(super) fn is_closed(&self) -> bool {
        self.advance(&mut Context::from_waker(Waker::noop()));
        self.driver.borrow().is_none()
    }

    /// Prepares all statements, so that no statement costs an extra message later.
    pub(super) fn prepare(&mut self, sql: &Sql, deadline: Instant) -> Option<Result<(), PgError>> {
        let prepared = sql.prepared().map(|statement| async {
            Ok((statement.to_owned(), self.client.prepare(statement).await?))
        });
        let prepared = self.wait(deadline, try_join_all(prepared))?;
        Some(prepared.map(|prepared| self.statements = prepared.into_iter().collect()))
    }

    /// Begins a transaction, after it has read the pending answer to the last statement. Returns
    /// whether the pending answer was `true` for a notice.
    pub(super) async fn begin(&self, statement: &str) -> Result<bool, PgError> {
        let pending = self.pending.take();
        let ended = async {
            match pending {
                Some(Pending::Rollback(answer)) => read_to_end(answer).await.map(|_| false),
                // A notice that fails changes nothing.
                Some(Pending::Notice(answer)) => Ok(read_to_end(answer).await.unwrap_or(false)),
                None => Ok(false),
            }
        };
        // Polled in their order on the wire: `biased` polls the first future first.
        let (ended, begun) = tokio::join!(biased; ended, self.client.batch_execute(statement));
        begun.and(ended)
    }

    /// Sends a rollback without waiting for its answer. Returns whether it was sent.
    pub(super) fn roll_back(&self) -> bool {
        self.send("ROLLBACK", Pending::Rollback)
    }

    /// Sends a notice without waiting for its answer. Returns whether it was sent.
    pub(super) fn send_notice(&self, statement: &str) -> bool {
        self.send(statement, Pending::Notice)
    }

    fn send(
        &self,
        statement: &str,
        pending: impl FnOnce(Pin<Box<SimpleQueryStream>>) -> Pending,
    ) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let sent = pin!(self.client.simple_query_raw(statement)).poll(&mut context);
        let Poll::Ready(Ok(answer)) = sent else { return false };
        self.pending.replace(Some(pending(Box::pin(answer))));
        !self.is_closed() && !self.socket.is_full()
    }

    pub(super) async fn query(
        &self,
        sql: &str,
        with: &Parameters<'_>,
    ) -> Result<Vec<Row>, PgError> {
        match self.statements.get(sql) {
            Some(statement) => self.client.query(statement, with).await,
            None => self.client.query(sql, with).await,
        }
    }

    pub(super) async fn execute(&self, sql: &str, with: &Parameters<'_>) -> Result<(), PgError> {
        match self.statements.get(sql) {
            Some(statement) => self.client.execute(statement, with).await.map(drop),
            None => self.client.execute(sql, with).await.map(drop),
        }
    }
}

/// Reads the answer to the end, and returns whether a row begins with `true`.
async fn read_to_end(mut answer: Pin<Box<SimpleQueryStream>>) -> Result<bool, PgError> {
    let mut is_true = false;
    while let Some(message) = poll_fn(|context| answer.as_mut().poll_next(context)).await {
        if let SimpleQueryMessage::Row(row) = message? {
            is_true |= row.get(0) == Some("t");
        }
    }
    Ok(is_true)
}

/// Waits for `request` on the current thread. `advance` moves bytes between the socket and the
/// channels that the request waits for.
pub(super) fn wait<F: Future>(
    socket: &Socket,
    deadline: Instant,
    request: F,
    mut advance: impl FnMut(&mut Context<'_>),
) -> Option<F::Output> {
    let mut request = pin!(request);
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    loop {
        woken.0.store(false, Relaxed);
        if let Poll::Ready(output) = request.as_mut().poll(&mut context) {
            return Some(output);
        }
        advance(&mut context);
        if !woken.0.load(Relaxed) && !socket.wait(deadline) {
            return None;
        }
    }
}

/// Whether the request must be polled again. `Relaxed` suffices: only the waiting thread itself
/// sets the flag, while it advances the connection.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}
