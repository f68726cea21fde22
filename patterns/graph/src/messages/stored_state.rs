//! The value of a state: whether the vertex has halted, a hash of its edges, and the state itself.

use keyloom::{Error, Result};

/// The parts of the value of a state.
pub(super) struct StoredState<'b> {
    pub(super) is_halted: bool,
    pub(super) fingerprint: u32,
    /// The state in Postcard.
    pub(super) state: &'b [u8],
}

#[derive(Debug, thiserror::Error)]
#[error("it is not the state of a vertex: it is damaged; clear the run and run it again")]
struct NotAState;

impl<'b> StoredState<'b> {
    pub(super) fn split(value: &'b [u8]) -> Result<Self> {
        match value.split_first_chunk() {
            Some(([halted @ 0..=1, a, b, c, d], state)) => {
                let fingerprint = u32::from_be_bytes([*a, *b, *c, *d]);
                Ok(Self { is_halted: *halted == 1, fingerprint, state })
            }
            _ => Err(Error::other(NotAState)),
        }
    }

    /// The bytes before the state.
    pub(super) fn begin(is_halted: bool, fingerprint: u32) -> Vec<u8> {
        [&[u8::from(is_halted)][..], &fingerprint.to_be_bytes()].concat()
    }
}
