use keyloom_patterns::Key;

const FIVE: isize = 5;

#[derive(Key)]
enum Status {
    #[key(0)]
    Open = 7,
    #[key(1)]
    Closed = 2,
    #[key(2)]
    Other = FIVE,
}

fn main() {}
