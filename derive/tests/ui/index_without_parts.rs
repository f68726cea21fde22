use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(table = "tickets", key(id), index(by_status = ()))]
#[record(index(id))]
#[record(index(by_id = (down(id))))]
#[record(index(by_two = (each(a), each(b))))]
struct Ticket {
    id: u64,
    a: Vec<u8>,
    b: Vec<u8>,
}

fn main() {}
