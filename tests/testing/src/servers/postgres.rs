//! A PostgreSQL server.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use super::process::{Process, free_port, loopback};
use super::{Proxy, script};

/// A separate server, with an empty database `keyloom` that belongs to the user `keyloom`.
pub struct Postgres {
    // The process ends before its directory is removed.
    process: Process,
    directory: TempDir,
    port: u16,
    settings: Vec<(String, String)>,
}

impl Postgres {
    /// Starts a server and waits until it responds.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same, with settings of `postgres.sh` (`KEYLOOM_PGPASSWORD` and the like).
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The user `postgres` must be able to traverse the directory.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).unwrap();
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let mut said = String::new();
        // Another process may take the port first, so the start is retried.
        for _ in 0..3 {
            let port = free_port();
            match run(&directory, port, &settings) {
                Ok(process) => return Self { process, directory, port, settings },
                Err(why) => said = why,
            }
        }
        panic!("PostgreSQL does not start:\n{said}");
    }

    /// The address for a client.
    pub fn address(&self) -> String {
        self.address_by(self.port)
    }

    /// The address for a client that connects through a proxy.
    pub fn through(&self, proxy: &Proxy) -> String {
        self.address_by(proxy.address().port())
    }

    fn address_by(&self, port: u16) -> String {
        let password = self.settings.iter().find(|(name, _)| name == "KEYLOOM_PGPASSWORD");
        let password = password.map(|(_, password)| format!(":{password}")).unwrap_or_default();
        format!("postgres://keyloom{password}@127.0.0.1:{port}/keyloom")
    }

    /// The whole log of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(self.directory.path().join("log")).unwrap()
    }

    pub fn socket(&self) -> SocketAddr {
        loopback(self.port)
    }

    /// Kills the server with all its processes, whatever they are doing.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Restarts the server on its data, and waits until it responds.
    pub fn start_again(&mut self) {
        self.kill();
        match run(&self.directory, self.port, &self.settings) {
            Ok(process) => self.process = process,
            Err(said) => panic!("PostgreSQL does not start again:\n{said}"),
        }
    }
}

impl Drop for Postgres {
    /// A killed server leaves a segment of System V shared memory, from which the next server on
    /// its data would detect surviving processes. There will be no next server, so the segment is
    /// removed.
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        self.kill();
        let lock = self.directory.path().join("postgres/data/postmaster.pid");
        let lock = fs::read_to_string(lock).unwrap_or_default();
        // The seventh line contains the key and the id of the segment.
        let ids = lock.lines().nth(6).and_then(|line| line.split_whitespace().nth(1));
        if let Some(Ok(id)) = ids.map(str::parse) {
            // SAFETY: no process is attached to the segment; the server and its processes have
            // ended.
            unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) };
        }
    }
}

fn run(directory: &TempDir, port: u16, settings: &[(String, String)]) -> Result<Process, String> {
    let mut command = Command::new(script("postgres.sh"));
    command.arg(directory.path().join("postgres")).arg(port.to_string());
    command.envs(settings.iter().map(|(name, value)| (name, value)));
    let mut process = Process::start(&mut command, &directory.path().join("log"));
    process.wait_until(|| is_ready(port).unwrap_or(false))?;
    Ok(process)
}

/// Whether the server accepts connections. Then it requests authentication (`R`); during start or
/// recovery, it responds with an error (`E`).
fn is_ready(port: u16) -> std::io::Result<bool> {
    const VERSION: u32 = 3 << 16;
    let mut stream = TcpStream::connect(loopback(port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    let mut hello = VERSION.to_be_bytes().to_vec();
    hello.extend(b"user\0keyloom\0database\0keyloom\0\0");
    let length = u32::try_from(hello.len() + 4).unwrap();
    stream.write_all(&[&length.to_be_bytes(), &hello[..]].concat())?;
    let mut answer = [0];
    stream.read_exact(&mut answer)?;
    Ok(answer == *b"R")
}
