//! A help desk of five tables and twelve indexes, declared with the types.

use keyloom::{Result, Store};
use keyloom_patterns::{Key, Record, Schema};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, Key)]
pub enum Status {
    #[key(0)]
    Open,
    #[key(1)]
    Waiting,
    #[key(2)]
    Closed,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "tenants", key(id))]
pub struct Tenant {
    pub id: u32,
    #[unique]
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "people", key(tenant, id), index(by_name = (tenant, name)))]
pub struct Person {
    pub tenant: u32,
    pub id: u64,
    pub name: String,
    #[unique]
    pub mail: String,
    #[index(each)]
    pub teams: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "tickets", key(tenant, id))]
#[record(index(by_status = (tenant, status, desc(opened))))]
#[record(index(unassigned = (tenant, opened), when = self.assignee.is_none()))]
pub struct Ticket {
    pub tenant: u32,
    pub id: u64,
    pub title: String,
    pub status: Status,
    pub opened: u64,
    #[index]
    pub assignee: Option<u64>,
    #[index(each)]
    pub tags: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "comments", key(tenant, ticket, number), index(by_author = (author, desc(at))))]
pub struct Comment {
    pub tenant: u32,
    pub ticket: u64,
    pub number: u32,
    pub author: u64,
    pub at: u64,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
#[record(table = "sessions", key = u128, index(by_person = (tenant, person)))]
pub struct Session {
    pub tenant: u32,
    pub person: u64,
    #[index]
    pub ends: u64,
    #[index(when = !self.address.is_empty())]
    pub address: String,
}

pub struct Desk {
    pub tenants: TenantTable,
    pub people: PersonTable,
    pub tickets: TicketTable,
    pub comments: CommentTable,
    pub sessions: SessionTable,
}

impl Desk {
    pub fn declare(schema: &Schema<'_, impl Store>) -> Result<Self> {
        Ok(Self {
            tenants: TenantTable::declare(schema)?,
            people: PersonTable::declare(schema)?,
            tickets: TicketTable::declare(schema)?,
            comments: CommentTable::declare(schema)?,
            sessions: SessionTable::declare(schema)?,
        })
    }
}
