//! Invalid or unreachable addresses give clear errors quickly, and passwords are never shown.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use keyloom::{Error, RetryPolicy, ServerError, Store, Writer};
use keyloom_etcd::Etcd;

use crate::server::{Server, fresh};

fn refused(address: &str) -> (Error, Duration) {
    let begun = Instant::now();
    let error = Etcd::options().timeout(Duration::from_secs(2)).open(address).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    (error, begun.elapsed())
}

#[test]
fn what_is_no_address_or_no_name_is_a_bad_option() {
    for address in
        ["localhost", "postgres://a/b", "etcd://a/b/c", "etcd://a/b c", "etcd://u:secret@"]
    {
        let (error, _) = refused(address);
        assert!(matches!(error, Error::InvalidArgument { .. }), "{address}: {error}");
    }
    let bad = [
        Etcd::options().name("a/b"),
        Etcd::options().max_operations(15),
        Etcd::options().max_request_bytes(1_000),
    ];
    for options in bad {
        let error = options.open("etcd://127.0.0.1:1").unwrap_err();
        assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    }
}

#[test]
fn where_no_one_is_that_is_said_at_once() {
    let (error, took) = refused("etcd://ada:secret@127.0.0.1:1,127.0.0.1:2/n");
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
    assert!(error.is_retryable() && !error.maybe_committed());
    let text = error.to_string();
    assert!(text.contains("etcd://127.0.0.1:1,127.0.0.1:2/n"), "{text}");
    assert!(text.contains("refused"), "{text}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    let (error, _) = refused("etcd://nobody.invalid/n");
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
}

#[test]
fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let (error, took) = refused(&format!("etcd://{}/n", silent.local_addr().unwrap()));
    assert!(matches!(error, Error::Server(ServerError::ConnectionLost { .. })), "{error:?}");
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn a_server_that_does_not_talk_etcd_is_an_error() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("etcd://{}/n", other.local_addr().unwrap());
    let serve = std::thread::spawn(move || {
        for stream in other.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = std::io::Write::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    let (error, _) = refused(&address);
    assert!(!error.maybe_committed(), "{error:?}");
    drop(serve);
}

#[test]
fn a_password_where_there_are_no_users_is_a_clear_error() {
    let Some(server) = Server::from_environment() else { return };
    let (error, _) = refused(&format!("etcd://ada:secret@{}/n", server.members()));
    assert!(!error.is_retryable(), "{error}");
    assert!(matches!(error, Error::Server(ServerError::LoginRefused { .. })), "{error:?}");
    let said = error.to_string();
    for part in ["etcd://", "check the user, the password", "whether authentication is enabled"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn passwords_do_not_show() {
    let options = Etcd::options().user("ada", "secret");
    let shown = format!("{options:?}");
    assert!(shown.contains("ada") && !shown.contains("secret"), "{shown}");
}

#[test]
fn a_handle_shows_where_it_leads() {
    let (store, cleanup) = fresh!();
    let shown = format!("{store:?}");
    assert!(shown.starts_with("Etcd(\"etcd://") && shown.contains(cleanup.name()), "{shown}");
}

#[test]
fn a_member_that_is_down_does_not_matter() {
    let Some(server) = Server::from_environment() else { return };
    let (address, _cleanup) = server.fresh_address();
    let address = address.replace("etcd://", "etcd://127.0.0.1:1,127.0.0.1:2,");
    for _ in 0..100 {
        let store = Etcd::options().retry_policy(RetryPolicy::default()).open(&address).unwrap();
        store.transact(|txn| txn.add(b"n", 1)).unwrap();
    }
}
