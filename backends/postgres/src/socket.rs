//! A non-blocking socket: the thread waits for it explicitly.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The most bytes of one read. The buffer is zeroed first; in a buffer that grew with the answer,
/// this would cost more than the read.
const MOST_BYTES_OF_READ: usize = 64 << 10;

/// The socket of a connection.
#[derive(Debug)]
pub(super) struct Socket {
    kind: Kind,
    /// Whether the last write found the kernel's send buffer full.
    is_full: AtomicBool,
}

#[derive(Debug)]
pub(super) enum Kind {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

macro_rules! on {
    ($kind:expr, $stream:ident => $done:expr) => {
        match $kind {
            Kind::Tcp($stream) => $done,
            #[cfg(unix)]
            Kind::Unix($stream) => $done,
        }
    };
}

impl Socket {
    pub(super) fn new(kind: Kind) -> io::Result<Self> {
        on!(&kind, stream => stream.set_nonblocking(true))?;
        Ok(Self { kind, is_full: AtomicBool::new(false) })
    }

    /// Whether the last write found the kernel's send buffer full.
    pub(super) fn is_full(&self) -> bool {
        self.is_full.load(Relaxed)
    }

    /// Sleeps until the socket is readable, or writable if the last write found no room. Returns
    /// `false` at the deadline.
    pub(super) fn wait(&self, deadline: Instant) -> bool {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let room = if self.is_full() { PollFlags::OUT } else { PollFlags::empty() };
            let mut watched = [on!(&self.kind, s => PollFd::new(s, PollFlags::IN | room))];
            match poll(&mut watched, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                // An error of the socket is reported by the next read.
                Ok(_) | Err(_) => return true,
            }
        }
    }

    fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        on!(&self.kind, stream => { let mut stream = stream; stream.read(into) })
    }

    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        on!(&self.kind, stream => { let mut stream = stream; stream.write(bytes) })
    }
}

/// The bytes of a socket, for the client of PostgreSQL. `Pending` means that the thread should
/// [wait](Socket::wait): no waker is stored.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Arc<Socket>);

impl AsyncRead for Bytes {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let most = buffer.remaining().min(MOST_BYTES_OF_READ);
        let read = unless_blocked(|| self.0.read(buffer.initialize_unfilled_to(most)));
        read.map_ok(|bytes| buffer.advance(bytes))
    }
}

impl AsyncWrite for Bytes {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = unless_blocked(|| self.0.write(bytes));
        self.0.is_full.store(written.is_pending(), Relaxed);
        written
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn unless_blocked<T>(mut work: impl FnMut() -> io::Result<T>) -> Poll<io::Result<T>> {
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Poll::Pending,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return Poll::Ready(done),
        }
    }
}
