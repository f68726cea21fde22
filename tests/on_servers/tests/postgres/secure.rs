//! Passwords and TLS, on a separate server.

use keyloom::{Error, Reader, ServerError, Store, Writer};
use keyloom_postgres::Postgres;

use keyloom_testing::servers::{self, Server, or_skip};

/// All output about an error or a store.
fn shown<T: std::fmt::Debug>(opened: &keyloom::Result<T>) -> String {
    match opened {
        Ok(store) => format!("{store:?}"),
        Err(error) => format!("{error} {error:?}"),
    }
}

#[test]
fn a_password_is_used_and_never_shown() {
    let settings = [("KEYLOOM_PGPASSWORD", "open-sesame")];
    let start = || servers::Postgres::start_with(&settings);
    let Some(mut server) = or_skip(Server::Postgres, start) else { return };
    let address = server.address();
    let store = Postgres::open(&address);
    assert!(!shown(&store).contains("sesame"), "{}", shown(&store));
    let store = store.unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    assert!(!store.place().contains("sesame"));
    let any = Postgres::open_address(&address);
    assert!(!shown(&any).contains("sesame"));

    let wrong = Postgres::open(&address.replace("sesame", "wrong-sesame"));
    let said = shown(&wrong);
    assert!(said.contains("password authentication failed") && !said.contains("sesame"), "{said}");
    let user = |name: &str| address.replace("keyloom:open-sesame", name);
    for (opened, part) in [
        (wrong, "password authentication failed"),
        (Postgres::open(&user("nobody:sesame")), "password authentication failed"),
        (Postgres::open(&user("keyloom")), "password missing"),
    ] {
        let said = shown(&opened);
        let error = opened.unwrap_err();
        assert!(matches!(error, Error::Server(ServerError::LoginRefused { .. })), "{said}");
        assert!(!error.is_retryable() && !error.maybe_committed(), "{said}");
        for part in [part, "postgres://127.0.0.1:", "check the user, the password"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("sesame"), "{said}");
    }

    server.kill();
    let mut snapshots = (0..3).map(|_| store.snapshot().map(drop));
    let said = shown(&snapshots.find(Result::is_err).unwrap());
    assert!(said.contains("lost") && !said.contains("sesame"), "{said}");
    server.start_again();
    assert_eq!(store.snapshot().unwrap().get(b"a").unwrap().as_deref(), Some(&b"1"[..]));
}

#[cfg(not(feature = "tls"))]
#[test]
fn tls_that_was_not_built_is_not_silently_left_out() {
    let error = Postgres::open("postgres://ada@127.0.0.1/geo?sslmode=require").unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    assert!(error.to_string().contains("`tls`"), "{error}");
}

#[cfg(feature = "tls")]
#[test]
fn tls_is_spoken_and_the_server_verified() {
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    let made = || generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
    let CertifiedKey { cert, signing_key } = made();
    let files = tempfile::tempdir().unwrap();
    let [certificate, key] = ["crt", "key"].map(|name| files.path().join(name));
    std::fs::write(&certificate, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    let settings = [
        ("KEYLOOM_PG_TLS_CERT", certificate.to_str().unwrap()),
        ("KEYLOOM_PG_TLS_KEY", key.to_str().unwrap()),
    ];
    let start = || servers::Postgres::start_with(&settings);
    let Some(server) = or_skip(Server::Postgres, start) else { return };
    let address = server.address();
    let store = Postgres::options().ca_certificate(cert.pem()).open(&address).unwrap();
    store.transact(|txn| txn.put(b"a", b"1")).unwrap();
    assert!(store.snapshot().unwrap().get(b"a").unwrap().is_some());

    // The certificate is signed by an authority that this client does not trust.
    let required = format!("{address}?sslmode=require");
    let other = Postgres::options().ca_certificate(made().cert.pem());
    for opened in [Postgres::open(&required), other.open(&address)] {
        let said = shown(&opened);
        assert!(opened.is_err() && said.contains("certificate"), "{said}");
    }
    // The certificate has another name.
    let elsewhere = address.replace("127.0.0.1", "localhost");
    let opened = Postgres::options().ca_certificate(cert.pem()).open(&elsewhere);
    assert!(shown(&opened).contains("certificate"), "{}", shown(&opened));
    // The text is not a certificate.
    let unusable = Postgres::options().ca_certificate("no PEM").open(&address);
    assert!(matches!(unusable, Err(Error::InvalidArgument { .. })), "{}", shown(&unusable));
}

#[cfg(feature = "tls")]
#[test]
fn tls_is_not_given_up_for_a_server_that_has_none() {
    let Some(server) = or_skip(Server::Postgres, servers::Postgres::start) else { return };
    let opened = Postgres::open(&format!("{}?sslmode=require", server.address()));
    assert!(shown(&opened).contains("TLS"), "{}", shown(&opened));
}
