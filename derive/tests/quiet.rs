//! Generated code causes no warning in the program, also where the program uses little of it.

#![deny(warnings, missing_docs, unreachable_pub, unused, single_use_lifetimes)]
#![deny(clippy::all, clippy::pedantic, clippy::unwrap_used, clippy::indexing_slicing)]

/// A record of which only the table is used.
mod private {
    use keyloom_patterns::{Key, Record};
    use serde::{Deserialize, Serialize};

    #[derive(Clone, Copy, Serialize, Deserialize, Key)]
    enum Status {
        #[key(0)]
        Open,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(table = "old", key(id))]
    struct Old {
        id: u32,
    }

    #[derive(Serialize, Deserialize, Record)]
    #[record(table = "tickets", key(tenant, id), version = 2, from_plain = Old)]
    #[record(index(by_status = (status, desc(id)), when = self.is_listed(|id, _| id > 1)))]
    struct Ticket {
        tenant: String,
        id: u32,
        #[index(each, desc)]
        marks: [u8; 2],
        #[unique(name = "once", when = match &*self.tenant { "a" => self.id > 1, _ => true })]
        status: Option<Status>,
    }

    impl Ticket {
        fn is_listed(&self, is_listed: impl Fn(u32, &str) -> bool) -> bool {
            is_listed(self.id, &self.tenant)
        }
    }

    impl From<Old> for Ticket {
        fn from(old: Old) -> Self {
            let status = Some(Status::Open);
            Self { tenant: String::new(), id: old.id, marks: [1, 2], status }
        }
    }

    #[test]
    fn a_private_record_is_declared() -> keyloom::Result<()> {
        let store = keyloom::Memory::new();
        TicketTable::declare(&keyloom_patterns::Schema::open(&store, "desk")?)?;
        OldTable::declare(&keyloom_patterns::Schema::open(&store, "desk")?).map(drop)
    }
}
