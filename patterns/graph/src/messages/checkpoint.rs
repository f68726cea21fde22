//! The header and the checkpoint of a run.

use keyloom::value::{Codec, Postcard, Versioned};
use keyloom::{KeyBuf, Reader, Result, Subspace};
use keyloom_kit::Fnv;
use serde::{Deserialize, Serialize};

use super::aggregate::Aggregate;
use crate::GraphError;
use crate::keys::shown;

type Format = Versioned<Postcard, 1>;

/// The keys of a run; see the [module](super).
#[derive(Clone)]
pub(super) struct Layout {
    pub(super) space: Subspace,
    pub(super) header: KeyBuf,
    pub(super) checkpoint: KeyBuf,
    pub(super) states: Subspace,
}

impl Layout {
    pub(super) fn new(space: &Subspace) -> Self {
        Self {
            space: space.clone(),
            header: space.pack(&0_u8),
            checkpoint: space.pack(&1_u8),
            states: space.child(&2_u8),
        }
    }

    /// The messages that are received in a superstep.
    pub(super) fn inbox(&self, superstep: u64) -> Subspace {
        self.space.child(&(3_u8, superstep))
    }
}

/// The version and the options that a run depends on, in addition to the graph. Stored when the run
/// begins.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) version: u32,
    pub(super) options: String,
}

impl Header {
    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        <Format as Codec<Self>>::encode(self, &mut bytes)?;
        Ok(bytes)
    }

    /// Checks that `stored` is this header.
    ///
    /// # Errors
    /// [`GraphError::OtherRun`].
    pub(super) fn require(&self, stored: &[u8]) -> Result<()> {
        if stored == self.encode()? {
            return Ok(());
        }
        let stored = <Format as Codec<Self>>::decode(stored)?.to_string();
        Err(GraphError::OtherRun { stored, declared: self.to_string() }.into())
    }

    /// A hash of this header, stored in the checkpoint.
    pub(super) fn fingerprint(&self) -> Result<u64> {
        let mut hash = Fnv::new();
        hash.add(&self.encode()?);
        Ok(hash.finish())
    }
}

impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "version {} with {}", self.version, self.options)
    }
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Pass {
    /// The first pass, which writes the initial states.
    Init,
    Superstep(u64),
    Finished,
}

/// The end of a batch whose messages are partly written.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Until {
    /// The packed id of the last vertex.
    pub(super) last: Vec<u8>,
    pub(super) ends_pass: bool,
    /// The number of messages of the batch that are written.
    pub(super) written: usize,
}

/// The progress of a run. Written with each batch.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Checkpoint<A> {
    /// The [fingerprint](Header::fingerprint) of the header.
    run: u64,
    pub(super) pass: Pass,
    /// Whether some vertices had not halted before this pass. If all had halted, only vertices with
    /// messages are computed.
    pub(super) visits_all: bool,
    /// The number of the batch in this pass.
    pub(super) batch: u64,
    /// The packed id of the last vertex that was computed in this pass.
    pub(super) last: Option<Vec<u8>>,
    /// The end of the current batch, after a part of its messages is written.
    pub(super) until: Option<Until>,
    /// The number of vertices, counted in the first pass.
    pub(super) vertices: u64,
    /// The number of vertices that have not halted in this pass.
    pub(super) active: u64,
    /// The number of messages stored in this pass.
    pub(super) sent: u64,
    /// The aggregate of the previous superstep.
    pub(super) aggregated: A,
    /// The aggregate of this superstep so far.
    pub(super) partial: A,
}

impl<A: Aggregate> Checkpoint<A> {
    pub(super) fn new(header: &Header) -> Result<Self> {
        Ok(Self {
            run: header.fingerprint()?,
            pass: Pass::Init,
            visits_all: true,
            batch: 0,
            last: None,
            until: None,
            vertices: 0,
            active: 0,
            sent: 0,
            aggregated: A::default(),
            partial: A::default(),
        })
    }

    pub(super) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        <Format as Codec<Self>>::encode(self, &mut bytes)?;
        Ok(bytes)
    }

    /// This checkpoint, after a part of the messages of the batch is written.
    pub(super) fn until(&self, until: Until) -> Self {
        Self { until: Some(until), ..self.clone() }
    }

    /// Reads the checkpoint, and returns its bytes as well.
    ///
    /// # Errors
    /// [`GraphError::NoCheckpoint`].
    pub(super) fn read(reader: &impl Reader, layout: &Layout) -> Result<(Self, Vec<u8>)> {
        let Some(bytes) = reader.get(&layout.checkpoint)? else {
            return Err(GraphError::NoCheckpoint { key: shown(&layout.checkpoint) }.into());
        };
        let decoded = <Format as Codec<Self>>::decode(&bytes);
        Ok((decoded.map_err(|error| error.at(&layout.checkpoint))?, bytes.to_vec()))
    }

    /// The checkpoint after the last batch of a pass.
    pub(super) fn end_pass(mut self) -> Self {
        let is_over = self.active == 0 && self.sent == 0;
        self.pass = match self.pass {
            Pass::Init if self.vertices > 0 => Pass::Superstep(0),
            Pass::Superstep(n) if !is_over => Pass::Superstep(n + 1),
            _ => Pass::Finished,
        };
        self.visits_all = self.active > 0;
        (self.last, self.batch, self.active, self.sent) = (None, 0, 0, 0);
        self.aggregated = std::mem::take(&mut self.partial);
        self
    }
}
