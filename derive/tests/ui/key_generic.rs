use keyloom_patterns::Key;

#[derive(Key)]
struct Id<T>(T);

#[derive(Key)]
struct Name<'a>(&'a str);

fn main() {}
