//! Which requests are answered.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, Method, StatusCode, header};
use uuid::Uuid;

/// Why a request is refused.
pub type Refusal = (StatusCode, &'static str);

/// Checks requests before anything is read for them.
pub struct Guard {
    listen: SocketAddr,
    /// The first segment of all paths. It is required on loopback too: otherwise every user of the
    /// machine could read a store whose files only one of them may read.
    token: String,
}

impl Guard {
    /// The guard of a server that listens at this address.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, token: Uuid::new_v4().simple().to_string() }
    }

    /// Whether other machines can connect.
    pub fn is_remote(&self) -> bool {
        !self.listen.ip().is_loopback()
    }

    /// The URL of the page.
    pub fn url(&self) -> String {
        format!("http://{}/{}/", self.listen, self.token)
    }

    /// The path of a request, without the token.
    pub fn admit<'p>(
        &self,
        method: &Method,
        headers: &HeaderMap,
        path: &'p str,
    ) -> Result<&'p str, Refusal> {
        if !self.is_own_host(headers) {
            return Err((StatusCode::FORBIDDEN, "the Host header names another host"));
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        let path = match path.split_once('/') {
            Some((given, rest)) if is_same(given, &self.token) => rest,
            _ => return Err((StatusCode::FORBIDDEN, "the token of the URL is missing")),
        };
        match *method {
            Method::GET => Ok(path),
            _ => Err((StatusCode::METHOD_NOT_ALLOWED, "the explorer only reads: use GET")),
        }
    }

    // A page of another site can resolve its own name to this machine (DNS rebinding), and would
    // read the store as its own origin. Its requests carry its name in the Host header.
    fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
        let Ok(host) = host.to_str() else { return false };
        let (host, port) = split_port(host);
        let own = self.listen.ip();
        let is_own = match host.parse::<IpAddr>() {
            Err(_) => host.eq_ignore_ascii_case("localhost"),
            // A numeric address is not resolved by DNS, so it cannot be rebound.
            Ok(_) if own.is_unspecified() => true,
            Ok(ip) => ip.is_loopback() || ip == own,
        };
        is_own && port == Some(self.listen.port())
    }
}

/// The name and the port of a Host header. `[::1]:80` has brackets.
fn split_port(host: &str) -> (&str, Option<u16>) {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(80)),
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    (bare.unwrap_or(name), port)
}

// Compares all bytes, so that the time does not depend on how many are right.
fn is_same(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    given.len() == token.len() && differences == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn admitted(listen: &str, host: &str, path: &str) -> bool {
        let guard = Guard::new(listen.parse().unwrap());
        let path = format!("/{}{path}", guard.token);
        let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
        guard.admit(&Method::GET, &headers, &path).is_ok()
    }

    #[test]
    fn only_the_own_host_is_admitted() {
        for (listen, host, expected) in [
            ("127.0.0.1:7000", "127.0.0.1:7000", true),
            ("127.0.0.1:7000", "LOCALHOST:7000", true),
            ("127.0.0.1:80", "localhost", true),
            ("[::1]:7000", "[::1]:7000", true),
            ("[::1]:80", "[::1]", true),
            ("127.0.0.1:7000", "127.0.0.1:7001", false),
            ("127.0.0.1:7000", "127.0.0.1", false),
            ("127.0.0.1:7000", "evil.example:7000", false),
            ("127.0.0.1:7000", "127.0.0.1.evil.example:7000", false),
            ("127.0.0.1:7000", "10.0.0.7:7000", false),
            ("10.0.0.7:7000", "10.0.0.7:7000", true),
            ("10.0.0.7:7000", "10.0.0.8:7000", false),
            ("0.0.0.0:7000", "10.0.0.8:7000", true),
            ("0.0.0.0:7000", "evil.example:7000", false),
            ("127.0.0.1:7000", "", false),
        ] {
            assert_eq!(admitted(listen, host, "/"), expected, "{listen} {host}");
        }
    }

    #[test]
    fn a_token_differs_each_time_and_is_compared_whole() {
        let listen = "0.0.0.0:7000".parse().unwrap();
        let (guard, other) = (Guard::new(listen), Guard::new(listen));
        assert_ne!(guard.url(), other.url());
        let token = guard.token.clone();
        let headers = HeaderMap::from_iter([(header::HOST, "10.0.0.7:7000".parse().unwrap())]);
        let admit = |path: &str| guard.admit(&Method::GET, &headers, path).map(str::to_owned);
        assert_eq!(admit(&format!("/{token}/api/overview")).unwrap(), "api/overview");
        let shorter = token.get(1..).unwrap();
        for path in ["/", "//", &format!("/{token}"), &format!("/{shorter}/"), "/api/overview"] {
            assert_eq!(admit(path).unwrap_err().0, StatusCode::FORBIDDEN, "{path}");
        }
    }
}
