//! A help desk over HTTP.

use std::error::Error;
use std::thread;

use keyloom::{AnyStore, AsyncStore};
use keyloom_patterns::locking::queue::Stop;
use keyloom_redb::Redb;
use keyloom_service::desk::Desk;
use keyloom_service::http;
use tokio::net::TcpListener;

const HELP: &str = "\
A help desk over HTTP.

Usage: service [--store ADDRESS] [--listen HOST:PORT]

  --store ADDRESS     the store [default: memory:]
                        lmdb:DIRECTORY
                        redb:FILE
                        postgres://user:password@host:port/database?table=name
                        etcd://host:port,host:port/name
                      the last two with `cargo run --features postgres,etcd`
  --listen HOST:PORT  [default: 127.0.0.1:8080]

Try it:
  curl -X PUT http://127.0.0.1:8080/tickets/0193b0a0-0000-7000-8000-000000000001 \\
       -H 'content-type: application/json' \\
       -d '{\"customer\":7,\"title\":\"No hot water\",\"text\":\"Since Monday.\",\"latitude\":46.95,\"longitude\":7.45}'
  curl 'http://127.0.0.1:8080/search?query=water'
";

struct Options {
    store: String,
    listen: String,
}

impl Options {
    /// Returns `None` after printing the help.
    fn from_arguments() -> Result<Option<Self>, Box<dyn Error>> {
        use lexopt::prelude::*;
        let mut options = Self { store: "memory:".into(), listen: "127.0.0.1:8080".into() };
        let mut arguments = lexopt::Parser::from_env();
        while let Some(argument) = arguments.next()? {
            match argument {
                Short('h') | Long("help") => {
                    print!("{HELP}");
                    return Ok(None);
                }
                Long("store") => options.store = arguments.value()?.string()?,
                Long("listen") => options.listen = arguments.value()?.string()?,
                _ => return Err(format!("{}; see --help", argument.unexpected()).into()),
            }
        }
        Ok(Some(options))
    }
}

/// One thread writes, with one commit for all waiting requests. PostgreSQL and etcd would allow
/// several writers, but every ticket changes the same parts of the text index. With 64 clients,
/// several writers would conflict and take five times as long.
fn open(address: &str) -> keyloom::Result<AsyncStore<AnyStore>> {
    let store = AnyStore::open_with(
        address,
        &[
            ("redb", Redb::open_address),
            #[cfg(feature = "postgres")]
            ("postgres", keyloom_postgres::Postgres::open_address),
            #[cfg(feature = "etcd")]
            ("etcd", keyloom_etcd::Etcd::open_address),
        ],
    )?;
    Ok(AsyncStore::new(store))
}

fn main() -> Result<(), Box<dyn Error>> {
    let Some(options) = Options::from_arguments()? else { return Ok(()) };
    let desk = Desk::open(open(&options.store)?)?;
    let stop = Stop::new();
    thread::scope(|scope| {
        let mails = thread::Builder::new().name("mails".into()).spawn_scoped(scope, || {
            desk.send_mails(&stop, |mail| {
                println!("mail to customer {}: we have your ticket {}", mail.customer, mail.ticket);
                Ok::<_, String>(())
            })
        })?;
        let served = serve(&options.listen, desk.clone());
        stop.request();
        match mails.join() {
            Ok(sent) => println!("{} mails sent", sent?.completed),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        served
    })
}

/// Serves until Ctrl-C, then answers the requests that have begun.
#[tokio::main]
async fn serve(listen: &str, desk: Desk<AnyStore>) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(listen).await?;
    println!("listening on http://{}", listener.local_addr()?);
    let interrupted = async {
        // If the handler cannot be installed, Ctrl-C ends the process, which loses nothing either.
        let _ignored = tokio::signal::ctrl_c().await;
    };
    axum::serve(listener, http::routes(desk)).with_graceful_shutdown(interrupted).await?;
    Ok(())
}
