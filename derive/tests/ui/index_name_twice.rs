use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), index(by_status = (status, id)))]
struct Ticket {
    id: u64,
    #[index]
    status: u8,
}

fn main() {}
