use keyloom_patterns::Record;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Record)]
#[record(tabel = "tickets")]
#[record(table = "tickets", key(id))]
struct Ticket {
    id: u64,
    #[index(descending)]
    status: u8,
    #[unique(sparse)]
    name: String,
}

#[derive(Serialize, Deserialize, Record)]
#[record(table = "loans", key(id), unique(by_book = book))]
#[record(index(by_due = due, by_member = (member, due)))]
struct Loan {
    id: u64,
    book: u32,
    member: u32,
    due: u32,
}

fn main() {}
