//! Addresses: `etcd://user:password@host:port,host:port/name`.

use std::fmt;

use keyloom::Result;
use keyloom::backend::refused_address;
use keyloom_remote::{NAME_RULE, is_name};

const SCHEME: &str = "etcd://";
const DEFAULT_PORT: u16 = 2379;

/// The parts of an address.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Address {
    /// `host:port` of each member.
    pub(super) members: Vec<String>,
    pub(super) user: Option<(String, String)>,
    pub(super) name: Option<String>,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|(name, _)| name);
        f.debug_struct("Address")
            .field("members", &self.members)
            .field("user", &user)
            .field("name", &self.name)
            .finish()
    }
}

impl Address {
    pub(super) fn parse(address: &str) -> Result<Self> {
        // The password may contain any character, including `@`.
        let (user, rest) = match address.rsplit_once('@') {
            Some((user, rest)) => (Some(user), rest),
            None => (None, address.strip_prefix(SCHEME).unwrap_or(address)),
        };
        let bad = |why| refused_address(address, why);
        if !address.starts_with(SCHEME) {
            return Err(bad("an address begins with etcd://, as in etcd://host:2379/name"));
        }
        let user = match user.and_then(|user| user.strip_prefix(SCHEME)) {
            None => None,
            Some(user) => {
                let (name, password) = user.split_once(':').unwrap_or((user, ""));
                let (name, password) = decoded(name)
                    .zip(decoded(password))
                    .ok_or_else(|| bad("the user or the password has a broken %-escape"))?;
                if name.contains(':') {
                    // The colon may be the start of a password, and errors show the user name.
                    return Err(bad(
                        "the name of a user contains no colon; write the colon before the password unescaped",
                    ));
                }
                Some((name, password))
            }
        };
        let (members, name) = match rest.split_once('/') {
            Some((members, name)) => (members, Some(name).filter(|name| !name.is_empty())),
            None => (rest, None),
        };
        let members: Option<Vec<String>> = members.split(',').map(member).collect();
        let members = members.ok_or_else(|| {
            bad("the members are host:port, separated by commas, as in etcd://a:2379,b:2379/name, \
                 or, with a user, etcd://user:password@a:2379/name")
        })?;
        if !name.is_none_or(is_name) {
            return Err(bad(NAME_RULE));
        }
        Ok(Self { members, user, name: name.map(String::from) })
    }
}

/// `host:port` of one member.
fn member(text: &str) -> Option<String> {
    let (host, port) = match text.rsplit_once(':') {
        // The colon is inside an IPv6 address in brackets, without a port.
        Some((_, tail)) if tail.ends_with(']') => (text, None),
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let port =
        port.map_or(Some(DEFAULT_PORT), |port| port.parse().ok().filter(|&port| port > 0))?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_usable = match bare {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            !host.is_empty() && host.chars().all(allowed)
        }
    };
    is_usable.then(|| format!("{host}:{port}"))
}

/// Decodes percent-encoding, such as `%40`.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            u8::try_from(high * 16 + low).ok()?
        } else {
            byte
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use keyloom::Error;

    use super::*;

    fn parsed(members: &[&str], user: Option<(&str, &str)>, name: Option<&str>) -> Address {
        Address {
            members: members.iter().map(ToString::to_string).collect(),
            user: user.map(|(name, password)| (name.into(), password.into())),
            name: name.map(Into::into),
        }
    }

    #[test]
    fn addresses_say_where_who_and_which() {
        let cases = [
            ("etcd://a", parsed(&["a:2379"], None, None)),
            ("etcd://a/", parsed(&["a:2379"], None, None)),
            ("etcd://a:1,b-c.d:2/x.y_z-1", parsed(&["a:1", "b-c.d:2"], None, Some("x.y_z-1"))),
            ("etcd://[::1]:7,[::2]/n", parsed(&["[::1]:7", "[::2]:2379"], None, Some("n"))),
            ("etcd://u:p@a/n", parsed(&["a:2379"], Some(("u", "p")), Some("n"))),
            ("etcd://u:p@/:x@a/n", parsed(&["a:2379"], Some(("u", "p@/:x")), Some("n"))),
            ("etcd://u%40:%25%C3%BC@a", parsed(&["a:2379"], Some(("u@", "%\u{fc}")), None)),
            ("etcd://u@a", parsed(&["a:2379"], Some(("u", "")), None)),
        ];
        for (address, expected) in cases {
            assert_eq!(Address::parse(address).unwrap(), expected, "{address}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_the_password_is_not_shown() {
        let cases = [
            "a:2379/n",
            "http://a:2379",
            "http://u:secret@a:2379",
            "secret@a",
            "postgres://u@a/n?password=secret",
            "host=a user=u password=secret",
            "etcd://",
            "etcd://,",
            "etcd://a,,b",
            "etcd://a:port/n",
            "etcd://a:0/n",
            "etcd://a:99999/n",
            "etcd://a b/n",
            "etcd://[::g]:1/n",
            "etcd://u:secret%4@a/n",
            "etcd://u:secret%zz@a/n",
            "etcd://u:secret@a:x/n",
            "etcd://u:secret@a/n/m",
            "etcd://u:secret@a/n\u{fc}",
            "etcd://a/n?x=1",
            "etcd://root:secret/n",
            "etcd://root:secret",
            "etcd://a,root:secret/n",
            "etcd://root%3Asecret/n",
            "etcd://root%3Asecret%40a/n",
            "etcd://root%3Asecret@a/n",
            "etcd://a/n?password=secret",
            "etcd://a/n/secret",
            "ETCD://root:secret@a/n",
            "etdc://root:secret/n",
            "etcd:root:secret/n",
            "root/secret",
            "secret",
        ];
        for address in cases {
            let error = Address::parse(address).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument { .. }), "{address}: {error}");
            assert!(!format!("{error} {error:?}").contains("secret"), "{address}: {error:?}");
        }
    }

    #[test]
    fn debug_does_not_show_the_password() {
        let shown = format!("{:?}", Address::parse("etcd://ada:secret@a/n").unwrap());
        assert!(shown.contains("ada") && !shown.contains("secret"), "{shown}");
    }
}
