//! The history of committed transactions, applied sequentially to a list of requests.
//!
//! The model is sequential: if each transaction, in commit order, does what the model allows, the
//! history is linearizable.

use std::collections::{BTreeMap, BTreeSet};

use keyloom_locking::Grant;

use super::super::schedules::Resource;

/// A request in the store.
#[derive(Clone, Debug)]
pub struct Entered {
    pub session: u64,
    pub ticket: u64,
    pub resource: Resource,
    /// The fencing token, or `None` while the request waits.
    pub token: Option<u64>,
}

/// The effect of a transaction.
#[derive(Clone, Debug)]
pub enum Did {
    /// The request with this ticket is granted. A request that did not wait has no earlier ticket.
    /// An upgrade replaces the old grant.
    Granted {
        waited: Option<u64>,
        replaces: Option<Grant>,
        grant: Grant,
        resource: Resource,
    },
    /// The request is in the queue.
    Waits {
        session: u64,
        ticket: u64,
        resource: Resource,
        replaces: Option<Grant>,
    },
    /// A poll found the request still waiting; nothing was written.
    StillWaits {
        ticket: u64,
        resource: Resource,
    },
    /// The request is released or withdrawn.
    Removed {
        session: u64,
        ticket: u64,
    },
    /// A verified write.
    Wrote(Grant),
    Nothing,
}

#[derive(Clone, Debug, Default)]
pub struct Model {
    pub requests: Vec<Entered>,
    /// The sessions whose leases have ended. Any later request may remove their requests.
    pub dead: BTreeSet<u64>,
    /// All tokens that were ever issued.
    given: Vec<(Resource, u64)>,
    /// All writes under exclusive locks, by session.
    writes: Vec<(u64, Resource)>,
    /// For each grant, by session and ticket, the number of writes that its holder has read. The
    /// holder reads once, under the lock, and keeps the value when it upgrades the lock.
    seen: BTreeMap<(u64, u64), usize>,
}

impl Model {
    pub fn has(&self, session: u64, ticket: u64) -> bool {
        self.requests.iter().any(|r| (r.session, r.ticket) == (session, ticket))
    }

    /// Whether the grant is held; a request that waits has no token.
    pub fn holds(&self, grant: &Grant) -> bool {
        let key = (grant.session, grant.ticket, Some(grant.token));
        self.requests.iter().any(|r| (r.session, r.ticket, r.token) == key)
    }

    /// The requests of other sessions that block this request.
    pub fn in_the_way<'m>(
        &'m self,
        session: u64,
        ticket: u64,
        resource: &'m Resource,
    ) -> impl Iterator<Item = &'m Entered> {
        let others = self.requests.iter().filter(move |r| r.session != session);
        let excluding = others.filter(|other| other.resource.excludes(resource));
        excluding.filter(move |other| other.token.is_some() || other.ticket < ticket)
    }

    /// Applies a committed transaction. Fails if no sequential history allows it.
    pub fn commit(&mut self, did: &Did) -> Result<(), String> {
        match did {
            Did::Granted { waited, replaces, grant, resource } => {
                self.grant(*waited, grant, resource)?;
                let Grant { session, ticket, .. } = *grant;
                let read = replaces.and_then(|old| self.seen.get(&(old.session, old.ticket)));
                let read = read.copied().unwrap_or(self.writes.len());
                self.seen.insert((session, ticket), read);
                if let Some(old) = replaces {
                    self.remove(old.session, old.ticket);
                }
                Ok(())
            }
            Did::Waits { session, ticket, resource, .. } => {
                if self.in_the_way(*session, *ticket, resource).next().is_none() {
                    return Err(format!("{did:?}, and nothing is in the way: {self:?}"));
                }
                self.enter(*session, *ticket, resource, None);
                Ok(())
            }
            Did::Removed { session, ticket } => {
                if !self.has(*session, *ticket) {
                    return Err(format!("{did:?}, which was gone: {self:?}"));
                }
                self.remove(*session, *ticket);
                Ok(())
            }
            Did::Wrote(grant) => {
                let key = (grant.session, grant.ticket);
                let found = self.requests.iter().find(|r| (r.session, r.ticket) == key);
                match found.map(|entered| entered.resource.clone()) {
                    Some(resource) => self.write(grant, &resource),
                    None => Err(format!("a stale write: {grant:?} in {self:?}")),
                }
            }
            Did::StillWaits { .. } | Did::Nothing => Ok(()),
        }
    }

    /// The value that a holder has read under its lock is still current when it writes under this
    /// lock, also after an upgrade.
    fn write(&mut self, grant: &Grant, resource: &Resource) -> Result<(), String> {
        if !resource.is_exclusive() {
            return Ok(());
        }
        let read = self.seen.get(&(grant.session, grant.ticket)).copied().unwrap_or_default();
        let later = self.writes.get(read..).unwrap_or_default().iter();
        let mut unseen =
            later.filter(|(by, other)| *by != grant.session && other.excludes(resource));
        if let Some(unseen) = unseen.next() {
            return Err(format!("an unseen value is overwritten: {grant:?} after {unseen:?}"));
        }
        self.writes.push((grant.session, resource.clone()));
        Ok(())
    }

    fn enter(&mut self, session: u64, ticket: u64, resource: &Resource, token: Option<u64>) {
        self.remove(session, ticket);
        self.requests.push(Entered { session, ticket, resource: resource.clone(), token });
    }

    fn remove(&mut self, session: u64, ticket: u64) {
        self.requests.retain(|r| (r.session, r.ticket) != (session, ticket));
    }

    fn grant(
        &mut self,
        waited: Option<u64>,
        grant: &Grant,
        resource: &Resource,
    ) -> Result<(), String> {
        let Grant { session, ticket, token, .. } = *grant;
        // A session that holds a lock may pass the queue for it.
        let holds = self.requests.iter().any(|r| r.session == session && r.token.is_some());
        let before = self.in_the_way(session, waited.unwrap_or(u64::MAX), resource);
        let (mut dead, mut living) = (Vec::new(), None);
        for other in before {
            let is_passed = other.token.is_none() && holds;
            match self.dead.contains(&other.session) {
                // A passed request may stay in the store, also after the end of its session.
                _ if is_passed => {}
                true => dead.push((other.session, other.ticket)),
                false => living = Some(other),
            }
        }
        if let Some(other) = living {
            return Err(format!("{grant:?} of {resource:?} is granted beside {other:?}"));
        }
        if waited.is_some_and(|waited| !self.has(session, waited)) {
            return Err(format!("{grant:?} is granted after its withdrawal"));
        }
        let last = self.given.iter().filter(|(other, _)| other.excludes(resource));
        if last.map(|(_, token)| *token).max().is_some_and(|last| last >= token) {
            return Err(format!("{grant:?} of {resource:?} has a token that is not greater"));
        }
        dead.into_iter().for_each(|(session, ticket)| self.remove(session, ticket));
        self.given.push((resource.clone(), token));
        self.enter(session, ticket, resource, Some(token));
        Ok(())
    }
}
