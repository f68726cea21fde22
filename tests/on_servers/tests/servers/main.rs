//! The servers that other tests need: they start, are killed, restart with their data, and leave
//! nothing behind.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use keyloom_testing::servers::{Cut, EtcdCluster, Mode, Postgres, Proxy, Server, or_skip};

/// The last line of the result of a query.
fn query(address: &str, sql: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--no-password", "--tuples-only", "--no-align", "--quiet"])
        .args(["--set=ON_ERROR_STOP=1", "--command", sql, address])
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().into()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
    }
}

#[test]
fn postgres_keeps_what_it_committed_when_it_is_killed() {
    let Some(mut server) = or_skip(Server::Postgres, Postgres::start) else { return };
    let address = server.address();
    query(&address, "CREATE TABLE t (n int)").unwrap();
    for n in 1..=3 {
        query(&address, &format!("INSERT INTO t VALUES ({n})")).unwrap();
        server.kill();
        assert!(query(&address, "SELECT 1").unwrap_err().contains("refused"));
        server.start_again();
        assert_eq!(query(&address, "SELECT count(*) FROM t").unwrap(), n.to_string());
    }
    assert_eq!(query(&address, "SHOW fsync").unwrap(), "on");
    assert_eq!(query(&address, "SELECT 'a' > 'B'").unwrap(), "t");
}

#[test]
fn postgres_calls_for_the_password_it_was_given() {
    let start = || Postgres::start_with(&[("KEYLOOM_PGPASSWORD", "secret")]);
    let Some(server) = or_skip(Server::Postgres, start) else { return };
    assert!(server.address().contains(":secret@"));
    assert_eq!(query(&server.address(), "SELECT 1").unwrap(), "1");
    let without = server.address().replace(":secret@", "@");
    assert!(query(&without, "SELECT 1").unwrap_err().contains("password"));
}

#[test]
fn a_commit_through_a_proxy_that_cuts_the_reply_has_happened() {
    let Some(server) = or_skip(Server::Postgres, Postgres::start) else { return };
    let proxy = Proxy::to(server.socket());
    let address = server.through(&proxy);
    query(&address, "CREATE TABLE t (n int)").unwrap();
    for (cut, there) in [(Cut::BeforeRequest, "0"), (Cut::BeforeReply, "1")] {
        proxy.cut_at_bytes(cut, b"INSERT");
        assert!(query(&address, "INSERT INTO t VALUES (1)").is_err());
        assert_eq!(query(&address, "SELECT count(*) FROM t").unwrap(), there);
    }
    assert_eq!(proxy.cuts(), 2);
}

#[test]
fn etcd_survives_its_leader_and_takes_it_back() {
    let Some(mut cluster) = or_skip(Server::Etcd, || EtcdCluster::start(3)) else { return };
    assert_eq!(cluster.address().matches("127.0.0.1:").count(), 3);
    for _ in 0..3 {
        let leader = cluster.leader();
        cluster.kill(leader);
        let begun = Instant::now();
        assert_ne!(cluster.leader(), leader);
        eprintln!("a new leader after {:?}", begun.elapsed());
        cluster.start_again(leader);
    }
    // All members are killed, so there is no leader. After the restart, one is elected.
    (0..3).for_each(|index| cluster.kill(index));
    (0..3).for_each(|index| cluster.start_again(index));
    cluster.leader();
}

#[test]
fn one_member_is_a_cluster_too() {
    let Some(cluster) = or_skip(Server::Etcd, || EtcdCluster::start(1)) else { return };
    assert_eq!(cluster.leader(), 0);
}

/// Skipped tests count as passed; the last line of the program reports their number, and the
/// reason.
#[test]
fn skipped_tests_are_counted_on_the_last_line() {
    let (mut output, both) = std::io::pipe().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        "one_member_is_a_cluster_too",
        "etcd_survives_its_leader_and_takes_it_back",
    ]);
    command.env("PATH", "/nowhere").env_remove("KEYLOOM_REQUIRE_SERVERS");
    command.stdout(both.try_clone().unwrap()).stderr(both);
    assert!(command.status().unwrap().success());
    // The command holds the other end of the pipe.
    drop(command);
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    let expected = "tests skipped: 2 (there is no `etcd`; run tests/servers/install.sh)";
    assert_eq!(said.lines().last(), Some(expected), "{said}");
}

/// A server that echoes each byte.
fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut byte = [0];
                while stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte)).is_ok() {}
            });
        }
    });
    address
}

fn say(stream: &mut TcpStream, byte: u8) -> Option<u8> {
    let mut answer = [0];
    stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    stream.write_all(&[byte]).ok()?;
    stream.read_exact(&mut answer).ok().map(|()| answer[0])
}

#[test]
fn a_proxy_forwards_cuts_hangs_and_refuses() {
    let proxy = Proxy::to(echo());
    let connect = || TcpStream::connect(proxy.address()).unwrap();
    let mut stream = connect();
    assert_eq!(say(&mut stream, 1), Some(1));
    proxy.cut_at(1, Cut::BeforeReply);
    assert_eq!(say(&mut stream, 2), Some(2));
    assert_eq!(say(&mut stream, 3), None);
    assert_eq!((proxy.cuts(), proxy.accepted()), (1, 1));

    let mut stream = connect();
    proxy.cut_at(0, Cut::NoReply);
    assert_eq!(say(&mut stream, 4), None);
    let silent = stream.read(&mut [0]).unwrap_err().kind();
    assert_eq!(silent, std::io::ErrorKind::WouldBlock, "open, and silent");

    let mut stream = connect();
    assert_eq!(say(&mut stream, 4), Some(4));
    proxy.drop_connections();
    assert_eq!(say(&mut stream, 5), None);

    let mut stream = connect();
    assert_eq!(say(&mut stream, 5), Some(5));
    proxy.set(Mode::Hang);
    assert_eq!(say(&mut stream, 6), None);
    proxy.set(Mode::Refuse);
    // Delayed packets arrive late, and the connection survives.
    let mut late = [0];
    stream.read_exact(&mut late).unwrap();
    assert_eq!((late[0], say(&mut stream, 7)), (6, Some(7)));
    assert_eq!(say(&mut connect(), 8), None);
    proxy.set(Mode::Forward);
    assert_eq!(say(&mut connect(), 9), Some(9));
}
