//! A proxy that breaks connections on demand.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

/// Forwards connections on loopback between clients and a server.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// The treatment of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Forward,
    /// New connections are closed at once. Existing connections continue.
    Refuse,
    /// Nothing is forwarded in either direction, and nothing is closed.
    Hang,
}

/// The point at which a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The client's packet never reaches the server.
    BeforeRequest,
    /// The server gets the packet and responds, but the response is dropped: the client cannot know
    /// the outcome.
    BeforeReply,
    /// The same, but the connection stays open: the client waits until its time-out.
    NoReply,
}

struct Shared {
    server: SocketAddr,
    mode: Mutex<Mode>,
    mode_changed: Condvar,
    cut: Mutex<Option<Plan>>,
    cuts: AtomicUsize,
    accepted: AtomicUsize,
    open: Mutex<Vec<Arc<Connection>>>,
    is_closed: AtomicBool,
}

struct Plan {
    cut: Cut,
    matches: Matches,
}

type Matches = Box<dyn FnMut(&[u8]) -> bool + Send>;

struct Connection {
    client: TcpStream,
    server: TcpStream,
    /// The next reply must be dropped.
    is_doomed: AtomicBool,
    /// All replies are dropped.
    is_mute: AtomicBool,
}

impl Connection {
    fn close(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = self.server.shutdown(Shutdown::Both);
    }
}

impl Proxy {
    /// A proxy in front of `server`. It forwards everything until [`set`](Self::set) is called.
    pub fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            server,
            mode: Mutex::new(Mode::Forward),
            mode_changed: Condvar::new(),
            cut: Mutex::default(),
            cuts: AtomicUsize::new(0),
            accepted: AtomicUsize::new(0),
            open: Mutex::default(),
            is_closed: AtomicBool::new(false),
        });
        thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.accept(&listener)
        });
        Self { address, shared }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mode: Mode) {
        *self.shared.mode.lock().unwrap() = mode;
        self.shared.mode_changed.notify_all();
    }

    /// Breaks all open connections.
    pub fn drop_connections(&self) {
        self.shared.open.lock().unwrap().drain(..).for_each(|connection| connection.close());
    }

    /// Breaks one connection, once, at the client's `n`-th packet, counted from 0 and from now over
    /// all connections. A packet is a piece of data that the client has sent at once.
    pub fn cut_at(&self, n: usize, cut: Cut) {
        let mut packets = 0..n;
        self.cut_when(cut, move |_| packets.next().is_none());
    }

    /// Breaks one connection, once, at the first packet from a client for which `matches` is true.
    pub fn cut_when(&self, cut: Cut, matches: impl FnMut(&[u8]) -> bool + Send + 'static) {
        *self.shared.cut.lock().unwrap() = Some(Plan { cut, matches: Box::new(matches) });
    }

    /// The same, at the first packet that contains some bytes.
    pub fn cut_at_bytes(&self, cut: Cut, bytes: &'static [u8]) {
        self.cut_when(cut, move |packet| packet.windows(bytes.len()).any(|window| window == bytes));
    }

    /// The number of connections that were broken by [`cut_at`](Proxy::cut_at) and similar methods.
    pub fn cuts(&self) -> usize {
        self.shared.cuts.load(SeqCst)
    }

    /// The number of accepted connections.
    pub fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, SeqCst);
        self.set(Mode::Refuse);
        self.drop_connections();
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        while let Ok((client, _)) = listener.accept() {
            if self.is_closed.load(SeqCst) {
                return;
            }
            self.accepted.fetch_add(1, SeqCst);
            if self.mode_if_not_hanging() == Mode::Refuse {
                continue;
            }
            let Ok(server) = TcpStream::connect(self.server) else { continue };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let (is_doomed, is_mute) = (AtomicBool::default(), AtomicBool::default());
            let connection = Arc::new(Connection { client, server, is_doomed, is_mute });
            self.open.lock().unwrap().push(Arc::clone(&connection));
            let (shared, other) = (Arc::clone(&self), Arc::clone(&connection));
            thread::spawn(move || shared.forward(&other, Shared::requests));
            let shared = Arc::clone(&self);
            thread::spawn(move || shared.forward(&connection, Shared::replies));
        }
    }

    /// Waits while the mode is `Hang`.
    fn mode_if_not_hanging(&self) -> Mode {
        let mode = self.mode.lock().unwrap();
        *self.mode_changed.wait_while(mode, |mode| *mode == Mode::Hang).unwrap()
    }

    fn forward(
        &self,
        connection: &Arc<Connection>,
        packets: impl Fn(&Self, &Connection) -> std::io::Result<()>,
    ) {
        let _ = packets(self, connection);
        connection.close();
        self.open.lock().unwrap().retain(|open| !Arc::ptr_eq(open, connection));
    }

    fn requests(&self, connection: &Connection) -> std::io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        loop {
            let packet = match (&connection.client).read(&mut buffer)? {
                0 => return Ok(()),
                bytes => &buffer[..bytes],
            };
            self.mode_if_not_hanging();
            let plan = self.cut.lock().unwrap().take_if(|plan| (plan.matches)(packet));
            if let Some(plan) = plan {
                self.cuts.fetch_add(1, SeqCst);
                match plan.cut {
                    Cut::BeforeRequest => return Ok(()),
                    Cut::BeforeReply => connection.is_doomed.store(true, SeqCst),
                    Cut::NoReply => connection.is_mute.store(true, SeqCst),
                }
            }
            (&connection.server).write_all(packet)?;
        }
    }

    fn replies(&self, connection: &Connection) -> std::io::Result<()> {
        // The first packet from a server after a request need not be the reply.
        const GRACE: Duration = Duration::from_millis(100);
        let mut buffer = vec![0; 64 << 10];
        loop {
            let packet = match (&connection.server).read(&mut buffer)? {
                0 => return Ok(()),
                bytes => &buffer[..bytes],
            };
            self.mode_if_not_hanging();
            if connection.is_mute.load(SeqCst) {
                continue;
            }
            if connection.is_doomed.load(SeqCst) {
                thread::sleep(GRACE);
                return Ok(());
            }
            (&connection.client).write_all(packet)?;
        }
    }
}
