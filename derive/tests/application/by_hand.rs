//! The same tables and indexes, declared by hand.

use keyloom::{Desc, Result, Store};
use keyloom_patterns::{Attached, Index, IndexEntries, Schema, Table, entry};

use super::derived::{Comment, Person, Session, Status, Tenant, Ticket};

pub type PersonKey = (u32, u64);
pub type TicketKey = (u32, u64);
pub type CommentKey = (u32, u64, u32);

#[allow(dead_code, reason = "a program has a handle for each index")]
pub struct Desk {
    pub tenants: Table<u32, Tenant>,
    pub tenants_by_name: Attached<Index<u32, Tenant, String>>,
    pub people: Table<PersonKey, Person>,
    pub people_by_name: Attached<Index<PersonKey, Person, (u32, String)>>,
    pub people_by_mail: Attached<Index<PersonKey, Person, String>>,
    pub people_by_teams: Attached<Index<PersonKey, Person, String>>,
    pub tickets: Table<TicketKey, Ticket>,
    pub tickets_by_status: Attached<Index<TicketKey, Ticket, (u32, Status, Desc<u64>)>>,
    pub tickets_unassigned: Attached<Index<TicketKey, Ticket, (u32, u64)>>,
    pub tickets_by_assignee: Attached<Index<TicketKey, Ticket, Option<u64>>>,
    pub tickets_by_tags: Attached<Index<TicketKey, Ticket, String>>,
    pub comments: Table<CommentKey, Comment>,
    pub comments_by_author: Attached<Index<CommentKey, Comment, (u64, Desc<u64>)>>,
    pub sessions: Table<u128, Session>,
    pub sessions_by_person: Attached<Index<u128, Session, (u32, u64)>>,
    pub sessions_by_ends: Attached<Index<u128, Session, u64>>,
    pub sessions_by_address: Attached<Index<u128, Session, String>>,
}

impl Desk {
    pub fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
        let tenants = schema.table("tenants")?;
        let tenants_by_name =
            schema.unique_index(&tenants, "by_name", 1, |_, one: &Tenant| entry(&one.name))?;
        let people = schema.table("people")?;
        let people_by_name = schema
            .index(&people, "by_name", 1, |_, one: &Person| entry((one.tenant, &one.name)))?;
        let people_by_mail =
            schema.unique_index(&people, "by_mail", 1, |_, one: &Person| entry(&one.mail))?;
        let people_by_teams =
            schema.index(&people, "by_teams", 1, |_, one: &Person| one.teams.iter().collect())?;
        let tickets = schema.table("tickets")?;
        let tickets_by_status = schema.index(&tickets, "by_status", 1, |_, one: &Ticket| {
            entry((one.tenant, one.status, Desc(one.opened)))
        })?;
        let tickets_unassigned =
            schema.index(&tickets, "unassigned", 1, |_, one: &Ticket| match one.assignee {
                None => entry((one.tenant, one.opened)),
                Some(_) => IndexEntries::none(),
            })?;
        let tickets_by_assignee =
            schema.index(&tickets, "by_assignee", 1, |_, one: &Ticket| entry(one.assignee))?;
        let tickets_by_tags =
            schema.index(&tickets, "by_tags", 1, |_, one: &Ticket| one.tags.iter().collect())?;
        let comments = schema.table("comments")?;
        let comments_by_author = schema.index(&comments, "by_author", 1, |_, one: &Comment| {
            entry((one.author, Desc(one.at)))
        })?;
        let sessions = schema.table("sessions")?;
        let sessions_by_person = schema
            .index(&sessions, "by_person", 1, |_, one: &Session| entry((one.tenant, one.person)))?;
        let sessions_by_ends =
            schema.index(&sessions, "by_ends", 1, |_, one: &Session| entry(one.ends))?;
        let sessions_by_address =
            schema.index(&sessions, "by_address", 1, |_, one: &Session| {
                match one.address.is_empty() {
                    false => entry(&one.address),
                    true => IndexEntries::none(),
                }
            })?;
        Ok(Self {
            tenants,
            tenants_by_name,
            people,
            people_by_name,
            people_by_mail,
            people_by_teams,
            tickets,
            tickets_by_status,
            tickets_unassigned,
            tickets_by_assignee,
            tickets_by_tags,
            comments,
            comments_by_author,
            sessions,
            sessions_by_person,
            sessions_by_ends,
            sessions_by_address,
        })
    }
}
