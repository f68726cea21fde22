use keyloom_patterns::Key;

#[derive(Key)]
enum Status {
    #[key(0)]
    Open,
    #[key(1)]
    Waiting,
    #[key(1)]
    Closed,
}

fn main() {}
