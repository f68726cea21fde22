//! The members of a recipe: one record per request, in the order of arrival.

use std::collections::BTreeMap;

use keyloom::value::Postcard;
use keyloom::{EntryPage, Error, Reader, Result, Writer};
use keyloom_kit::derived::unless_undecodable;
use keyloom_kit::{Progress, page_behind};
use keyloom_tables::Table;
use keyloom_tables::table::record;
use serde::{Deserialize, Serialize};

use super::Of;
use crate::path::PathPart;
use crate::records::SessionRecord;
use crate::{Blocker, Locks};

/// A member, as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    session: u64,
    /// The number of permits of the semaphore. All members must use the same number.
    number: u32,
    /// When the member was added, in milliseconds since 1970.
    since: u64,
}

/// A member whose session is alive.
#[derive(Clone, Debug)]
pub(super) struct Present {
    pub(super) ticket: u64,
    member: Member,
    owner: SessionRecord,
}

impl Present {
    /// The member as a blocker of a request. `locks` is the text of the resource.
    pub(super) fn blocker(&self, locks: String, is_waiting: bool) -> Blocker {
        Blocker {
            session: self.member.session,
            name: self.owner.name.clone(),
            locks,
            is_waiting,
            has_unfinished_work: false,
            ticket: self.ticket,
            dead_at: self.owner.dead_at(),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Members {
    pub(super) table: Table<(PathPart, u64), Member>,
    pub(super) locks: Locks,
}

impl Members {
    /// The members of a resource up to this ticket whose sessions are alive. Removes the other
    /// members. Otherwise such a member could reappear: its clock may be behind, so its session may
    /// still renew its lease.
    pub(super) fn present(
        &self,
        txn: &mut impl Writer,
        of: &Of,
        up_to: u64,
    ) -> Result<Vec<Present>> {
        let (present, dead) = self.divide(txn, of, up_to)?;
        for ticket in dead {
            self.table.delete(txn, &(of.path.clone(), ticket))?;
        }
        Ok(present)
    }

    /// The members whose sessions are alive, and the tickets of the others.
    pub(super) fn divide(
        &self,
        reader: &impl Reader,
        of: &Of,
        up_to: u64,
    ) -> Result<(Vec<Present>, Vec<u64>)> {
        let now = self.locks.clock.now()?;
        let mut members = Vec::new();
        for found in self.table.range(reader, (of.path.clone(),))? {
            let ((_, ticket), member) = found?;
            if ticket > up_to {
                break;
            }
            members.push((ticket, member));
        }
        let sessions = self.sessions(reader, members.iter().map(|(_, member)| member.session))?;
        let (mut present, mut dead) = (Vec::new(), Vec::new());
        for (ticket, member) in members {
            match sessions.get(&member.session) {
                Some(owner) if now < owner.dead_at() => {
                    present.push(Present { ticket, member, owner: owner.clone() });
                }
                _ => dead.push(ticket),
            }
        }
        Ok((present, dead))
    }

    /// The records of sessions, in one round trip.
    fn sessions(
        &self,
        reader: &impl Reader,
        ids: impl Iterator<Item = u64>,
    ) -> Result<BTreeMap<u64, SessionRecord>> {
        let mut ids: Vec<u64> = ids.collect();
        ids.sort_unstable();
        ids.dedup();
        let records = self.locks.sessions.get_many(reader, ids.iter())?;
        let found = ids.iter().copied().zip(records);
        Ok(found.filter_map(|(id, record)| Some((id, record?))).collect())
    }

    /// Adds a member after the present members, and returns its ticket.
    pub(super) fn add(
        &self,
        txn: &mut impl Writer,
        of: &Of,
        session: u64,
        number: u32,
        present: &[Present],
    ) -> Result<u64> {
        let (since, _) = self.locks.live_session(txn, session)?;
        if let Some(other) = present.iter().find(|other| other.member.number != number) {
            return Err(Error::InvalidArgument {
                what: "the number of permits",
                value: format!(
                    "{number}, beside {} of session {}",
                    other.member.number, other.owner.name
                ),
                why: "it is the same for all sessions that use it at one time",
            });
        }
        let (_, ticket) = self.locks.next_token(txn, std::slice::from_ref(&of.lock))?;
        self.table.put(txn, &(of.path.clone(), ticket), &Member { session, number, since })?;
        Ok(ticket)
    }

    /// Whether the session has a member with this ticket.
    pub(super) fn has(
        &self,
        reader: &impl Reader,
        of: &Of,
        session: u64,
        ticket: u64,
    ) -> Result<bool> {
        let found = self.table.get(reader, &(of.path.clone(), ticket))?;
        Ok(found.is_some_and(|member| member.session == session))
    }

    /// Removes a member of the session, and returns whether it existed.
    ///
    /// The session is compared, since the ticket of a commit that failed may have been given to
    /// another session.
    pub(super) fn remove(
        &self,
        txn: &mut impl Writer,
        of: &Of,
        session: u64,
        ticket: u64,
    ) -> Result<bool> {
        match self.has(txn, of, session, ticket)? {
            true => self.table.delete(txn, &(of.path.clone(), ticket)),
            false => Ok(false),
        }
    }

    /// Removes some members whose sessions have ended, after the position of `done`.
    pub(super) fn sweep_batch(
        &self,
        txn: &mut impl Writer,
        batch: usize,
        done: &mut Progress,
    ) -> Result<()> {
        let space = self.table.space();
        let EntryPage { entries, last } =
            page_behind(done.position.last.as_deref(), txn, space, batch)?;
        done.position.last = last;
        done.entries += entries.len() as u64;
        let mut members: Vec<((PathPart, u64), Member)> = Vec::new();
        for entry in entries {
            // A damaged record must not stop the sweep of the others.
            match unless_undecodable(record::<_, _, _, Postcard>(space, entry))? {
                Some(member) => members.push(member),
                None => done.undecodable += 1,
            }
        }
        let sessions = members.iter().map(|(_, member)| member.session);
        let (sessions, now) = (self.sessions(txn, sessions)?, self.locks.clock.now()?);
        for (key, member) in &members {
            if sessions.get(&member.session).is_none_or(|owner| now >= owner.dead_at()) {
                done.removed += u64::from(self.table.delete(txn, key)?);
            }
        }
        Ok(())
    }
}
