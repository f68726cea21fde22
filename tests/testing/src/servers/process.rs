//! The process of a server, and its ports.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The time-out of a server start, on a machine that is busy with other tests.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A process that is killed when its handle is dropped.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts `command`, with its output in the file `log`.
    pub fn start(command: &mut Command, log: &Path) -> Self {
        let output = File::options().create(true).append(true).open(log).unwrap();
        let child = command
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        Self { child, log: log.to_owned() }
    }

    /// Waits until `is_ready`. Returns `Err` with the last lines of the log if the process ended
    /// instead.
    pub fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let has_ended = self.child.try_wait().unwrap().is_some();
            if has_ended || begun.elapsed() > PATIENCE {
                let log = fs::read_to_string(&self.log).unwrap_or_default();
                let tail: Vec<&str> = log.lines().rev().take(20).collect();
                return Err(tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
            }
            if is_ready() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the process and its descendants, as if all died at one moment, and waits until they
    /// are gone. Then their shared resources, above all memory, are released.
    pub fn kill(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = self.child.id();
        // A stopped process starts no children and reaps none, so the ids below stay valid.
        signal(pid, libc::SIGSTOP);
        wait_while(|| !matches!(state(pid), Some('T' | 'Z') | None));
        let others = descendants(pid);
        others.iter().for_each(|&other| signal(other, libc::SIGKILL));
        signal(pid, libc::SIGKILL);
        let _ = self.child.wait();
        // The process that adopts them may reap them late; a zombie holds no resources.
        wait_while(|| others.iter().any(|&other| !matches!(state(other), Some('Z') | None)));
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn wait_while(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while holds() && begun.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(1));
    }
}

#[allow(unsafe_code)]
fn signal(pid: u32, signal: i32) {
    // SAFETY: only sends a signal, to a child or a descendant of a child that was not reaped yet.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// The state and the parent of a process.
fn status(pid: u32) -> Option<(char, u32)> {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The preceding name may contain any character, including parentheses.
    let mut fields = status.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

fn state(pid: u32) -> Option<char> {
    status(pid).map(|(state, _)| state)
}

fn descendants(of: u32) -> Vec<u32> {
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str()?.parse().ok());
    let parents: Vec<(u32, u32)> =
        pids.filter_map(|pid: u32| Some((pid, status(pid)?.1))).collect();
    let mut found = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| pid));
        at += 1;
    }
    found.split_off(1)
}

/// A port on which no process listens. It is below the range of ephemeral ports, so that it is
/// still free when a server restarts.
pub fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(20_000..32_000);
        if TcpListener::bind(loopback(port)).is_ok() {
            return port;
        }
    }
}

pub fn loopback(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}
