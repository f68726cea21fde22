//! Addresses: any text is an address or is refused, and nothing that is said of it holds the password.
//! Nothing is connected to, and no file is opened.

use arbitrary::{Arbitrary, Result, Unstructured};
use keyloom::AnyStore;

/// Stands in every password below, and nowhere else: no mutation of an input makes it by chance.
const SECRET: &str = "9zS3cr3tQ7";

pub(crate) fn addresses(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    read(&text);
    let Ok(address) = with_password(&mut Unstructured::new(data)) else { return };
    for said in read(&address) {
        assert!(!said.contains(SECRET), "{address:?}: {said}");
    }
}

/// Everything that is said about an address.
fn read(address: &str) -> Vec<String> {
    let mut said = vec![];
    let scheme = address.split_once(':').map(|(scheme, _)| scheme);
    // These open something where they are compiled in.
    let opens = match scheme {
        Some("lmdb") => address != "lmdb:",
        Some("postgres" | "postgresql") => cfg!(feature = "postgres"),
        Some("etcd") => cfg!(feature = "etcd"),
        _ => false,
    };
    if !opens {
        said.push(shown(AnyStore::open(address).map(|store| format!("{store:?}"))));
    }
    #[cfg(feature = "postgres")]
    said.push(shown(keyloom::postgres::shown_address(address)));
    #[cfg(feature = "etcd")]
    said.push(shown(keyloom::etcd::shown_address(address)));
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

/// An address of one of the known forms, with any text around what the forms ask for.
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
    let scheme =
        input.choose(&["postgres://", "postgresql://", "etcd://", "postgres:", "etcd:"])?;
    Ok(match input.int_in_range(0..=3)? {
        0 => format!("{scheme}{user}:{password}@{host}/{rest}"),
        1 => format!("{scheme}{user}:{password}@{rest}"),
        2 => format!("postgres://{user}@{host}/{rest}?password={}", password.replace('&', "")),
        _ => {
            let quoted = password.replace(['\'', '\\'], "");
            format!("host={host} user={} password='{quoted}' {rest}", u8::arbitrary(input)?)
        }
    })
}
