//! Addresses: any text is an address or is refused, and no output about it contains the password.
//! Nothing is connected to, and no file is opened.

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::AnyStore;

/// Part of every password below and of nothing else: no mutation of an input creates it by chance.
const SECRET: &str = "9zS3cr3tQ7";

pub(crate) fn addresses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    read(&text);
    hides_the_password(data, read);
}

/// The control: prints a text that has no mark of a password.
pub(crate) fn with_an_error_that_looks_for_marks(data: &[u8]) {
    hides_the_password(data, |address| match address.contains(['@', '=']) {
        true => vec![],
        false => vec![format!("{address} is not usable")],
    });
}

fn hides_the_password(data: &[u8], read: impl Fn(&str) -> Vec<String>) {
    let Ok(address) = with_password(&mut Unstructured::new(data)) else { return };
    for said in read(&address) {
        assert!(!said.contains(SECRET), "{address:?}: {said}");
    }
}

/// All output about an address.
fn read(address: &str) -> Vec<String> {
    let mut said = vec![];
    // This opens a file.
    if !address.starts_with("lmdb:") || address == "lmdb:" {
        said.push(shown(AnyStore::open(address).map(|store| format!("{store:?}"))));
    }
    #[cfg(feature = "postgres")]
    said.push(shown(keyloom_postgres::shown_address(address)));
    #[cfg(feature = "etcd")]
    said.push(shown(keyloom_etcd::shown_address(address)));
    said
}

fn shown(outcome: keyloom::Result<String>) -> String {
    let error = match outcome {
        Ok(shown) => return shown,
        Err(error) => error,
    };
    let mut said = format!("{error} {error:?}");
    let mut source = std::error::Error::source(&error);
    while let Some(error) = source {
        said += &format!(" {error} {error:?}");
        source = error.source();
    }
    said
}

/// An address in one of the known forms, with any text around the required parts.
fn with_password(input: &mut Unstructured<'_>) -> Result<String> {
    let text = |input: &mut Unstructured<'_>| -> Result<String> {
        let count = input.int_in_range(0..=12)?;
        Ok(input.bytes(count.min(input.len()))?.iter().map(|byte| char::from(*byte)).collect())
    };
    let (before, after) = (text(input)?, text(input)?);
    let password = format!("{before}{SECRET}{after}");
    let user = text(input)?;
    let host = *input.choose(&["localhost", "a:1,b:2", "[::1]:7", "", "host:port"])?;
    let rest = text(input)?;
    let scheme = input.choose(&SCHEMES)?;
    let form = input.int_in_range(0..=6)?;
    Ok(match form {
        0 => format!("{scheme}{user}:{password}@{host}/{rest}"),
        1 => format!("{scheme}{user}:{password}@{rest}"),
        2 => format!("postgres://{user}@{host}/{rest}?password={}", password.replace('&', "")),
        3 => {
            let quoted = password.replace(['\'', '\\'], "");
            format!("host={host} user={} password='{quoted}' {rest}", u8::arbitrary(input)?)
        }
        // The host is missing, and the @ with it.
        4 => format!("{scheme}{user}:{SECRET}/{rest}"),
        // Everything is escaped, including the separator between user and password.
        5 => format!("{scheme}{}/{rest}?user=ada", escaped(&format!("{user}:{SECRET}@{host}"))),
        // Separated like the connection string of another driver.
        _ => format!("host={host};user=ada;password={SECRET} user=ada {rest}"),
    })
}

/// Known schemes, and misspelled ones.
const SCHEMES: [&str; 12] = [
    "postgres://",
    "postgresql://",
    "etcd://",
    "postgres:",
    "etcd:",
    "Postgres://",
    "postgress://",
    "pg://",
    "ETCD://",
    "etdc:",
    "memory://",
    "",
];

fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
