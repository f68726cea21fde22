//! An etcd cluster.

use std::io::{Error, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{PATIENCE, Process, free_port, loopback};
use super::{Proxy, script};

/// A separate cluster.
pub struct EtcdCluster {
    // The members end before their directory is removed.
    members: Vec<Member>,
    directory: TempDir,
    /// Additional command-line options of `etcd`.
    options: &'static str,
}

struct Member {
    client: u16,
    peer: u16,
    /// The process, or `None` while it is dead.
    process: Option<Process>,
}

impl EtcdCluster {
    /// Starts a cluster of 1 or 3 members and waits until each responds.
    pub fn start(members: usize) -> Self {
        Self::start_with(members, "")
    }

    /// The same, with additional options of `etcd`.
    pub fn start_with(members: usize, options: &'static str) -> Self {
        let mut said = String::new();
        // Another process may take a port first, so the start is retried.
        for _ in 0..3 {
            let member = |_| Member { client: free_port(), peer: free_port(), process: None };
            let members = (0..members).map(member).collect();
            let mut cluster = Self { members, directory: tempfile::tempdir().unwrap(), options };
            (0..cluster.members.len()).for_each(|index| cluster.spawn(index));
            match (0..cluster.members.len()).try_for_each(|index| cluster.wait_for(index)) {
                Ok(()) => return cluster,
                Err(why) => said = why,
            }
        }
        panic!("etcd does not start:\n{said}");
    }

    /// The address for a client: all members, and a prefix.
    pub fn address(&self) -> String {
        address(self.members.iter().map(|member| member.client))
    }

    /// The address for a client that connects through proxies.
    pub fn through<'p>(&self, proxies: impl IntoIterator<Item = &'p Proxy>) -> String {
        address(proxies.into_iter().map(|proxy| proxy.address().port()))
    }

    /// The client address of a member.
    pub fn socket(&self, index: usize) -> SocketAddr {
        loopback(self.members[index].client)
    }

    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// The index of the leader. Waits for a running election.
    pub fn leader(&self) -> usize {
        let begun = Instant::now();
        loop {
            // Other members may still report a dead leader, so the leader itself must confirm.
            let leads =
                |member: &Member| member.process.is_some() && leads(member.client).unwrap_or(false);
            if let Some(leader) = self.members.iter().position(leads) {
                return leader;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody leads");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Kills a member, whatever it is doing.
    pub fn kill(&mut self, index: usize) {
        self.members[index].process = None;
    }

    /// Restarts a member on its data, and waits until it responds, which requires a majority.
    pub fn start_again(&mut self, index: usize) {
        self.kill(index);
        self.spawn(index);
        let alive = self.members.iter().filter(|member| member.process.is_some()).count();
        if alive * 2 > self.members.len()
            && let Err(said) = self.wait_for(index)
        {
            panic!("member {index} of etcd does not start again:\n{said}");
        }
    }

    fn spawn(&mut self, index: usize) {
        let mut command = Command::new(script("etcd.sh"));
        command.env("KEYLOOM_ETCD_OPTIONS", self.options);
        command.arg(self.directory.path()).arg(index.to_string());
        command.args(
            self.members.iter().map(|Member { client, peer, .. }| format!("{client}:{peer}")),
        );
        let log = self.directory.path().join(format!("log-{index}"));
        self.members[index].process = Some(Process::start(&mut command, &log));
    }

    fn wait_for(&mut self, index: usize) -> Result<(), String> {
        let Member { client, process, .. } = &mut self.members[index];
        let process = process.as_mut().unwrap();
        process.wait_until(|| {
            ask(*client, "GET", "/health").is_ok_and(|health| health["health"] == "true")
        })
    }
}

fn address(ports: impl Iterator<Item = u16>) -> String {
    let sockets: Vec<_> = ports.map(|port| loopback(port).to_string()).collect();
    format!("etcd://{}/keyloom", sockets.join(","))
}

fn leads(client_port: u16) -> Result<bool, Error> {
    let status = ask(client_port, "POST", "/v3/maintenance/status")?;
    Ok(status["leader"].is_string() && status["leader"] == status["header"]["member_id"])
}

/// The response of a member over its JSON gateway.
fn ask(client_port: u16, method: &str, path: &str) -> Result<serde_json::Value, Error> {
    let mut stream = TcpStream::connect(loopback(client_port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let request = format!("{method} {path} HTTP/1.0\r\nContent-Length: 2\r\n\r\n{{}}");
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok(serde_json::from_str(body)?)
}
