//! An exit handler that runs before all others.
//!
//! The C library runs exit handlers and the destructors of C++ statics in the reverse order of
//! their registration. FoundationDB's network thread must stop before any static that it uses is
//! destroyed. But the client creates statics while it runs, and each is registered after all
//! earlier ones. So a handler that is registered only once runs too late: a program that exited
//! with an open store ended in SIGSEGV. Therefore the handler is moved to the end of the list
//! repeatedly:
//!
//! * just before the list is run, if the exiting thread is the main thread or has used a store: the
//!   C library first runs the destructors of the thread-locals of that thread;
//! * whenever a store is opened or dropped, and at growing intervals while a store is open. This
//!   covers an exit on a thread that has never used a store.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::network;

#[allow(unsafe_code, reason = "the C library has the list of what runs at exit")]
unsafe extern "C" {
    fn __cxa_atexit(
        handler: extern "C" fn(*mut c_void),
        argument: *mut c_void,
        owner: *const c_void,
    ) -> c_int;
    fn __cxa_finalize(owner: *const c_void);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn __cxa_thread_atexit_impl(
        destructor: extern "C" fn(*mut c_void),
        object: *mut c_void,
        owner: *const c_void,
    ) -> c_int;
}

/// The loader runs this function on the main thread before `main`, because the main thread may
/// never use a store.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[used]
#[allow(unsafe_code, reason = "the loader has a list of what runs before `main`")]
#[unsafe(link_section = ".init_array")]
static WATCH_MAIN: extern "C" fn() = watch_main;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
extern "C" fn watch_main() {
    // SAFETY: the destructor takes no object, and is valid as long as the program runs.
    #[allow(unsafe_code, reason = "Rust's thread-locals are not promised before `main`")]
    unsafe {
        __cxa_thread_atexit_impl(main_ends, ptr::null_mut(), ptr::from_ref(&OWNER).cast());
    }
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
extern "C" fn main_ends(_: *mut c_void) {
    move_last();
}

/// The address of this static identifies the owner of the handler, so that the C library removes no
/// other handler.
static OWNER: u8 = 0;
/// The owner of a second handler, which is never moved. It covers an exit that begins while the
/// first handler is being moved.
static LASTING_OWNER: u8 = 0;

thread_local! {
    /// Whether this thread is removing the handler. The C library removes a handler by calling it.
    static MOVES: Cell<bool> = const { Cell::new(false) };
    static WATCHED: Watch = const { Watch };
}

struct Watch;

impl Drop for Watch {
    fn drop(&mut self) {
        move_last();
    }
}

/// Moves the handler at the end of this thread.
pub(super) fn watch_this_thread() {
    // An error means that the thread is already ending.
    let _ = WATCHED.try_with(|_| ());
}

/// Moves the handler while a store is open: often at first, when most statics are created.
pub(super) async fn keep_last() {
    // If the program exits during a pause, a static created in that pause is destroyed before the
    // handler runs. So the pauses are short at first. Later, one move per second costs little.
    const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));
    let begun = Instant::now();
    loop {
        tokio::time::sleep((begun.elapsed() / 16).clamp(PAUSES.0, PAUSES.1)).await;
        move_last();
    }
}

/// Registers the handler that is never moved. Called once, before the network starts.
pub(super) fn register() {
    add(&LASTING_OWNER);
    move_last();
}

/// Moves the handler to the end of the list, so that it runs before all handlers registered so far.
// With a single registration, 9 of 30 runs that exited with an open store of a silent cluster ended
// in SIGSEGV. With the moves, 0 of 540 runs did.
pub(super) fn move_last() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // In a forked child, the lock may be held forever, and there is no thread to stop.
    if !network::is_started() {
        return;
    }
    let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    MOVES.set(true);
    // SAFETY: the owner is used for this handler only, so no other handler is removed.
    #[allow(unsafe_code, reason = "the C library has the list of what runs at exit")]
    unsafe {
        __cxa_finalize(ptr::from_ref(&OWNER).cast());
    }
    MOVES.set(false);
    let is_added = add(&OWNER);
    drop(one);
    if !is_added {
        // The list has already run, or there is no memory for a new entry.
        network::stop();
    }
}

fn add(owner: &'static u8) -> bool {
    // SAFETY: the handler has the type that the C library calls, takes no argument, and lives as
    // long as the program.
    #[allow(unsafe_code, reason = "the C library has the list of what runs at exit")]
    let result = unsafe { __cxa_atexit(at_exit, ptr::null_mut(), ptr::from_ref(owner).cast()) };
    result == 0
}

extern "C" fn at_exit(_: *mut c_void) {
    if !MOVES.get() {
        network::stop();
    }
}
