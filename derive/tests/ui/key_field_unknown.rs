use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(tenant, idd, tenant))]
struct Ticket {
    tenant: u8,
    id: u64,
}

fn main() {}
