//! The messages that a batch sends, kept in memory until they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use keyloom::value::{Codec, Postcard};
use keyloom::{KeyBuf, Result, Subspace, pack};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::reading::OVERHEAD;
use super::stream::joined;

/// A message from a computing thread to the outbox.
pub(super) enum Payload<M> {
    /// A message that is combined with others to the same vertex.
    Combined(M, fn(M, M) -> M),
    /// A message encoded with Postcard, shared by all receivers.
    Listed(Arc<[u8]>),
}

impl<M: Serialize + DeserializeOwned> Payload<M> {
    pub(super) fn new(message: M, combiner: Option<fn(M, M) -> M>) -> Result<Self> {
        match combiner {
            Some(combine) => Ok(Self::Combined(message, combine)),
            None => encode(&message).map(Self::Listed),
        }
    }
}

fn encode<M: Serialize + DeserializeOwned>(message: &M) -> Result<Arc<[u8]>> {
    let mut bytes = Vec::new();
    Postcard::encode(message, &mut bytes)?;
    Ok(bytes.into())
}

/// The messages of a batch by receiver.
pub(super) struct Outbox<M> {
    combined: BTreeMap<KeyBuf, Option<M>>,
    listed: BTreeMap<KeyBuf, Vec<Arc<[u8]>>>,
    /// The estimated memory of the messages in bytes.
    pub(super) bytes: usize,
}

impl<M: Clone + Serialize + DeserializeOwned> Outbox<M> {
    pub(super) fn new() -> Self {
        Self { combined: BTreeMap::new(), listed: BTreeMap::new(), bytes: 0 }
    }

    /// Adds a message to the receivers `to`, given as packed ids.
    pub(super) fn add(&mut self, payload: &Payload<M>, to: Vec<KeyBuf>) {
        for to in to {
            // The message is first in a map, and then in a list of entries. With a lower estimate,
            // PageRank took 365 kB although the bound was 262 kB.
            let size = to.len() + 6 * OVERHEAD;
            match payload {
                Payload::Combined(message, combine) => {
                    let combined = self.combined.entry(to).or_default();
                    let message = message.clone();
                    *combined = Some(match combined.take() {
                        Some(other) => combine(other, message),
                        None => {
                            self.bytes += size + size_of::<M>();
                            message
                        }
                    });
                }
                Payload::Listed(bytes) => {
                    self.bytes += size + bytes.len();
                    self.listed.entry(to).or_default().push(Arc::clone(bytes));
                }
            }
        }
    }

    /// The entries of all messages, in the order of their keys.
    pub(super) fn entries(self, inbox: &Subspace, batch: u64) -> Result<Vec<(KeyBuf, Arc<[u8]>)>> {
        let key =
            |to: &[u8], n: usize| joined(&joined(inbox.prefix(), to), &pack(&(batch, n as u64)));
        let mut entries = Vec::with_capacity(self.combined.len());
        for (to, message) in self.combined {
            if let Some(message) = message {
                entries.push((key(&to, 0), encode(&message)?));
            }
        }
        for (to, messages) in self.listed {
            entries.extend(messages.into_iter().enumerate().map(|(n, bytes)| (key(&to, n), bytes)));
        }
        Ok(entries)
    }
}
