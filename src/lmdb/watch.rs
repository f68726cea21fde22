//! Notifies of the commits of other processes, by inotify.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use crate::backend::{CommitSignal, Watch};

/// How often the thread checks whether it is still needed.
const CHECK: Duration = Duration::from_millis(100);

/// After a write of another process, the listeners are notified repeatedly, after pauses that grow
/// from this time to [`CHECK`].
// LMDB publishes a commit to readers some instructions after the write that inotify reports. With
// one notification for each write, one wait of ten read too early and slept until its poll.
const FIRST_REPEAT: Duration = Duration::from_micros(100);

/// The longest time from a commit of another process to its notification, while this process
/// writes too.
const BESIDE_OWN_WRITES: Duration = Duration::from_millis(10);

/// Watches the data file for as long as threads or tasks wait for a change.
pub(super) fn start(signal: &CommitSignal, data_file: impl FnOnce() -> PathBuf) {
    signal.watch(|| {
        let data_file = data_file();
        move |watch: &Watch| {
            // For example, a user may have reached the limit of inotify instances.
            if run(watch, &data_file).is_err() {
                watch.set_complete(false);
            }
            // Keeps the thread, so that not every wait starts a watch that fails again.
            while watch.is_needed() {
                thread::sleep(CHECK);
            }
        }
    });
}

fn run(watch: &Watch, data_file: &Path) -> io::Result<()> {
    let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    add_watch(&inotify, data_file, WatchFlags::MODIFY)?;
    watch.set_complete(true);
    let mut own_writes = watch.own_writes();
    // When to notify next, and the pause before that.
    let mut next = None::<(Instant, Duration)>;
    while watch.is_needed() {
        let timeout = next.map_or(CHECK, |(due, _)| due.saturating_duration_since(Instant::now()));
        if has_changed(&inotify, timeout)? {
            let own_before = std::mem::replace(&mut own_writes, watch.own_writes());
            // Commits of this process have already notified the listeners of their keys. But
            // another process may have written just before this process, so the listeners are
            // notified later.
            let is_own = own_writes != own_before || own_writes % 2 == 1;
            match is_own {
                true => _ = next.get_or_insert((Instant::now() + BESIDE_OWN_WRITES, CHECK)),
                false => {
                    watch.notify_any();
                    next = Some((Instant::now() + FIRST_REPEAT, FIRST_REPEAT));
                }
            }
        }
        if let Some((due, pause)) = next
            && due <= Instant::now()
        {
            watch.notify_any();
            let longer = pause * 10;
            next = (longer <= CHECK).then(|| (Instant::now() + longer, longer));
        }
    }
    Ok(())
}

/// Waits for a write to the file, at most for `timeout`. Returns whether there was one.
fn has_changed(inotify: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
    match poll(&mut [PollFd::new(inotify, PollFlags::IN)], Some(&timeout)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        polled => _ = polled?,
    }
    let mut buffer = [MaybeUninit::uninit(); 4_096];
    let mut events = Reader::new(inotify, &mut buffer);
    while let Ok(event) = events.next() {
        let _is_read = event;
    }
    Ok(true)
}
