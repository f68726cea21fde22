//! A FoundationDB cluster.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{PATIENCE, Process, free_port, loopback};

/// A separate cluster: each key is on two processes, and there are enough coordinators to lose one.
pub struct FoundationDbCluster {
    // The processes end before their directory is removed.
    processes: Vec<Member>,
    directory: TempDir,
}

struct Member {
    port: u16,
    /// The process, or `None` while it is dead.
    process: Option<Process>,
}

impl FoundationDbCluster {
    /// Starts a cluster of four processes or more and waits until it responds.
    pub fn start(processes: usize) -> Self {
        let member = |_| Member { port: free_port(), process: None };
        let processes: Vec<Member> = (0..processes).map(member).collect();
        let mut cluster = Self { processes, directory: tempfile::tempdir().unwrap() };
        cluster.write_file(&cluster.processes[..1]);
        (0..cluster.processes.len()).for_each(|index| cluster.spawn(index));
        cluster.wait_for("configure new double ssd", |output| output.status.success());
        let sockets: Vec<String> = cluster
            .processes
            .iter()
            .take(3)
            .map(|member| loopback(member.port).to_string())
            .collect();
        cluster.wait_for(&format!("coordinators {}", sockets.join(" ")), |output| {
            output.status.success()
        });
        cluster.wait_until_healthy();
        cluster
    }

    /// The address for a client.
    pub fn address(&self) -> String {
        format!("fdb:{}", self.file().display())
    }

    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Kills a process, whatever it is doing.
    pub fn kill(&mut self, index: usize) {
        self.processes[index].process = None;
    }

    /// Restarts a process on its data, and waits until every key is on two processes again.
    pub fn start_again(&mut self, index: usize) {
        self.kill(index);
        self.spawn(index);
        self.wait_until_healthy();
    }

    /// The version that the servers report.
    pub fn version() -> String {
        let output = Command::new("fdbserver").arg("--version").output().unwrap();
        String::from_utf8_lossy(&output.stdout).lines().next().unwrap_or_default().to_owned()
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("fdb.cluster")
    }

    fn write_file(&self, coordinators: &[Member]) {
        let sockets: Vec<String> =
            coordinators.iter().map(|member| loopback(member.port).to_string()).collect();
        fs::write(self.file(), format!("keyloom:test@{}\n", sockets.join(","))).unwrap();
    }

    fn spawn(&mut self, index: usize) {
        let port = self.processes[index].port;
        let mut command = Command::new("fdbserver");
        command.arg("--public-address").arg(loopback(port).to_string());
        command.arg("--cluster-file").arg(self.file());
        for (option, name) in [("--datadir", "data"), ("--logdir", "logs")] {
            let directory = self.directory.path().join(format!("{name}-{index}"));
            fs::create_dir_all(&directory).unwrap();
            command.arg(option).arg(directory);
        }
        // Each process counts as a separate machine.
        for locality in ["zoneid", "machineid"] {
            command.arg(format!("--locality-{locality}")).arg(format!("machine-{index}"));
        }
        let log = self.directory.path().join(format!("log-{index}"));
        self.processes[index].process = Some(Process::start(&mut command, &log));
    }

    fn wait_until_healthy(&self) {
        self.wait_for("status minimal; status", |output| {
            let said = String::from_utf8_lossy(&output.stdout);
            said.contains("The database is available")
                && said.contains("Replication health     - Healthy")
        });
    }

    /// Waits longer than for other servers: recovery takes up to a minute on an otherwise idle
    /// machine.
    fn wait_for(&self, words: &str, is_done: impl Fn(&Output) -> bool) {
        let begun = Instant::now();
        loop {
            let file = self.file();
            let output = Command::new("fdbcli")
                .args(["--timeout", "10", "--exec", words, "-C"])
                .arg(file)
                .output()
                .unwrap();
            if is_done(&output) {
                return;
            }
            assert!(
                begun.elapsed() < 5 * PATIENCE,
                "`{words}` is not done:\n{}",
                String::from_utf8_lossy(&output.stdout)
            );
            thread::sleep(Duration::from_millis(200));
        }
    }
}
