//! Notifies of the commits of other processes, by inotify.

use std::io;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use rustix::io::Errno;

use crate::backend::{CommitSignal, Watch};

/// How often the thread checks whether it is still needed.
const CHECK: Duration = Duration::from_millis(100);

/// Watches the data file for as long as threads or tasks wait for a change.
pub(super) fn start(signal: &CommitSignal, data_file: impl FnOnce() -> PathBuf) {
    signal.watch(|| {
        let data_file = data_file();
        move |watch: &Watch| {
            // For example, a user may have reached the limit of inotify instances.
            if run(watch, &data_file).is_err() {
                watch.set_complete(false);
            }
            // Not again for each wait.
            while watch.is_needed() {
                thread::sleep(CHECK);
            }
        }
    });
}

/// LMDB writes pages, and then the page that commits them, by system calls. A wait may therefore
/// read the key before the commit, and is notified again after it.
fn run(watch: &Watch, data_file: &Path) -> io::Result<()> {
    let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    add_watch(&inotify, data_file, WatchFlags::MODIFY)?;
    watch.set_complete(true);
    let check = Timespec::try_from(CHECK).map_err(io::Error::other)?;
    let mut buffer = [MaybeUninit::uninit(); 4_096];
    while watch.is_needed() {
        match poll(&mut [PollFd::new(&inotify, PollFlags::IN)], Some(&check)) {
            Ok(0) | Err(Errno::INTR) => continue,
            polled => polled?,
        };
        let mut events = Reader::new(&inotify, &mut buffer);
        while let Ok(event) = events.next() {
            let _is_read = event;
        }
        watch.notify_any();
    }
    Ok(())
}
