//! The members of a cluster, and requests to them.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use etcd_client::{
    Client, ConnectOptions, Error as EtcdError, KvClient, WatchOptions, WatchStream,
};

use super::error::Failed;

/// The number of times that a read tries all members before it fails.
// The four pauses between five rounds add up to 1 s. With fewer rounds, reads fail during an
// election; with more, the error of a cluster without a leader comes later.
const MOST_ROUNDS: u32 = 5;
/// The pause after the first round; each later pause is longer by the same amount. An election
/// takes a second or two.
const PAUSE: Duration = Duration::from_millis(100);
/// Requests limit the number of entries of an answer, so the channel need not limit its bytes.
const MOST_ANSWER_BYTES: usize = i32::MAX as usize;

/// Up to two connections to each member, each opened at its first request. Requests go to one
/// member until it fails, and then to another.
pub(super) struct Members {
    members: Vec<Member>,
    options: ConnectOptions,
    preferred: AtomicUsize,
}

struct Member {
    url: String,
    /// The first client is for requests that a member may answer alone, the second for requests
    /// that need a leader. A member without a leader refuses requests of the second client at once.
    /// If it waited instead, the outcome after a time-out would be unknown.
    clients: [Mutex<Option<Client>>; 2],
}

/// Whether any member may answer a request, or only a member that has a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    AMember = 0,
    ALeader = 1,
}

impl Members {
    pub(super) fn new(urls: impl IntoIterator<Item = String>, options: ConnectOptions) -> Self {
        let members = urls.into_iter().map(|url| Member { url, clients: Default::default() });
        let members: Vec<Member> = members.collect();
        // Random, so that the stores of many programs do not all use the same member.
        let preferred = AtomicUsize::new(fastrand::usize(..members.len().max(1)));
        Self { members, options, preferred }
    }

    /// Sends the request to one member after the other, until a member answers or a retry cannot
    /// help.
    ///
    /// `ask` receives whether a member may answer from its own state (at a `revision` that it has
    /// reached), or must confirm with the leader.
    pub(super) async fn read<T>(
        &self,
        revision: Option<i64>,
        ask: impl AsyncFn(KvClient, bool) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        let mut round = 1;
        loop {
            let mut none_answers = true;
            let mut last = None;
            // Each round goes through the members in their order. After a failure, the preferred
            // member is drawn at random, so a round that followed it could miss a member that
            // answers.
            let first = self.preferred();
            for n in 0..self.members.len() {
                let member = (first + n) % self.members.len();
                let error = match self.read_from(member, revision, &ask).await {
                    Ok(answer) => return Ok(answer),
                    Err(error) => error,
                };
                let failed = Failed::why(&error);
                if !failed.may_pass() {
                    return Err(error);
                }
                self.avoid(member, failed);
                none_answers &= failed == Failed::NotSent;
                last = Some(error);
            }
            let Some(error) = last.filter(|_| none_answers || round == MOST_ROUNDS) else {
                tokio::time::sleep(PAUSE * round).await;
                round += 1;
                continue;
            };
            return Err(error);
        }
    }

    async fn read_from<T>(
        &self,
        member: usize,
        revision: Option<i64>,
        ask: &impl AsyncFn(KvClient, bool) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        let attempt = Attempt::on(self, member);
        let answer = match revision {
            Some(_) => match self.ask(member, Needs::AMember, |client| ask(client, true)).await {
                Err(error) if Failed::why(&error) == Failed::FutureRevision => {
                    self.ask(member, Needs::ALeader, |client| ask(client, false)).await
                }
                answer => answer,
            },
            None => self.ask(member, Needs::ALeader, |client| ask(client, false)).await,
        };
        attempt.ended();
        answer
    }

    async fn ask<T>(
        &self,
        member: usize,
        needs: Needs,
        ask: impl AsyncFnOnce(KvClient) -> Result<T, EtcdError>,
    ) -> Result<T, EtcdError> {
        ask(self.client(member, needs).await?).await
    }

    /// Sends a request that must not be repeated: once, to one member. Sets `sent` before the
    /// request is sent.
    pub(super) async fn write<T>(
        &self,
        sent: &Cell<bool>,
        ask: impl AsyncFnOnce(KvClient) -> Result<T, EtcdError>,
    ) -> Result<T, WriteError> {
        let member = self.preferred();
        let attempt = Attempt::on(self, member);
        let client = match self.client(member, Needs::ALeader).await {
            Ok(client) => client,
            Err(error) => {
                attempt.ended();
                self.avoid(member, Failed::why(&error));
                return Err(WriteError::NotSent(error));
            }
        };
        sent.set(true);
        let answer = ask(client).await;
        attempt.ended();
        answer.map_err(|error| {
            self.avoid(member, Failed::why(&error));
            WriteError::Sent(error)
        })
    }

    fn preferred(&self) -> usize {
        self.preferred.load(Relaxed)
    }

    /// Makes another member the preferred one if a retry there may succeed, unless another thread
    /// has already done so. After a stale login, also drops the member's clients.
    fn avoid(&self, member: usize, failed: Failed) {
        if failed == Failed::StaleLogin {
            for needs in [Needs::AMember, Needs::ALeader] {
                self.with_slot(member, needs, |slot| *slot = None);
            }
        }
        if failed.may_pass() {
            // A random other member, so that not all threads choose the same.
            let others = self.members.len().saturating_sub(1).max(1);
            let next = (member + 1 + fastrand::usize(..others)) % self.members.len().max(1);
            let _ = self.preferred.compare_exchange(member, next, Relaxed, Relaxed);
        }
    }

    /// Waits for a change of `key` at `revision` or later, or for the end of the watch.
    pub(super) async fn change(&self, key: Vec<u8>, revision: i64) -> Result<(), EtcdError> {
        let mut changes = self.changes(key, Some(revision)).await?;
        while let Some(answer) = changes.message().await? {
            if answer.canceled() {
                return Err(EtcdError::WatchError(answer.cancel_reason().to_owned()));
            }
            if !answer.events().is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Calls `notify` when the watch has begun, and after each change of `key`, until the watch
    /// ends.
    pub(super) async fn watch(&self, key: Vec<u8>, notify: impl Fn()) -> Result<(), EtcdError> {
        let mut changes = self.changes(key, None).await?;
        while let Some(answer) = changes.message().await? {
            notify();
            if answer.canceled() {
                break;
            }
        }
        Ok(())
    }

    async fn changes(&self, key: Vec<u8>, from: Option<i64>) -> Result<WatchStream, EtcdError> {
        let connection = self.connection(self.preferred(), Needs::ALeader).await?;
        let options = from.map(|revision| WatchOptions::new().with_start_revision(revision));
        connection.watch_client().watch(key, options).await
    }

    async fn client(&self, member: usize, needs: Needs) -> Result<KvClient, EtcdError> {
        let connection = self.connection(member, needs).await?;
        Ok(connection.kv_client().max_decoding_message_size(MOST_ANSWER_BYTES))
    }

    async fn connection(&self, member: usize, needs: Needs) -> Result<Client, EtcdError> {
        let client = match self.with_slot(member, needs, |slot| slot.clone()).flatten() {
            Some(client) => client,
            None => {
                let urls: Vec<&str> = self
                    .members
                    .get(member)
                    .map(|member| member.url.as_str())
                    .into_iter()
                    .collect();
                let options = self.options.clone().with_require_leader(needs == Needs::ALeader);
                let client = Client::connect(urls, Some(options)).await?;
                self.with_slot(member, needs, |slot| *slot = Some(client.clone()));
                client
            }
        };
        Ok(client)
    }

    fn with_slot<T>(
        &self,
        member: usize,
        needs: Needs,
        f: impl FnOnce(&mut Option<Client>) -> T,
    ) -> Option<T> {
        let slot = self.members.get(member)?.clients.get(needs as usize)?;
        Some(f(&mut slot.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// A request that may be cancelled while it waits. If it is cancelled, its member counts as silent.
struct Attempt<'m> {
    members: &'m Members,
    member: usize,
    waits: bool,
}

impl<'m> Attempt<'m> {
    fn on(members: &'m Members, member: usize) -> Self {
        Self { members, member, waits: true }
    }

    fn ended(mut self) {
        self.waits = false;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if self.waits {
            self.members.avoid(self.member, Failed::Unknown);
        }
    }
}

/// The failure of a request that must not be repeated.
pub(super) enum WriteError {
    /// The request failed before it was sent, for example during the login.
    NotSent(EtcdError),
    Sent(EtcdError),
}

impl fmt::Debug for Members {
    /// Omits the options, which contain a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls = self.members.iter().map(|member| &member.url);
        f.debug_list().entries(urls).finish()
    }
}
