//! Imports a stream of vertices and edges in bounded transactions.

use std::fmt::Display;
use std::ops::ControlFlow;
use std::str::FromStr;

use keyloom::value::Codec;
use keyloom::{Error, Result, Store, pack, unpack};
use keyloom_kit::{BatchSize, Progress, RepairOptions};

use crate::graph::Graph;
use crate::keys::{EdgeKey, VertexId};

/// A vertex or an edge of an input.
pub(crate) enum Item<I, V, E> {
    #[cfg_attr(not(feature = "graphml"), expect(dead_code, reason = "edge lists have only edges"))]
    Vertex((I, V)),
    Edge((EdgeKey<I>, E)),
}

/// An input of vertices and edges. Its items are numbered, so that an import can resume.
pub(crate) trait Source<I, V, E> {
    /// What has a number: a line, for example. The position of an import of something else is
    /// refused.
    const UNIT: &'static str;

    /// The next item whose number is greater than `skipped`.
    fn next_item(&mut self, skipped: u64) -> Result<Option<Item<I, V, E>>>;

    /// The number of the item returned last, counted from 1; at the end of the input, the next
    /// number.
    fn number(&self) -> u64;

    /// The number of bytes read.
    fn bytes(&self) -> u64;
}

/// The number of bytes of input after which a batch ends.
// The items of a batch are in memory. With fewer bytes, large items make more transactions.
const BATCH_BYTES: u64 = 4 << 20;

/// The items of the next transactions, with their numbers.
type Batch<I, V, E> = Vec<(u64, Item<I, V, E>)>;

impl<I, V, E, C> Graph<I, V, E, C>
where
    I: VertexId,
    V: 'static,
    E: Clone + 'static,
    C: Codec<V> + Codec<E> + 'static,
{
    pub(crate) fn import<R: Source<I, V, E>>(
        &self,
        store: &impl Store,
        mut source: R,
        options: &RepairOptions,
        mut progress: impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> Result<Progress> {
        let (mut done, skipped) = (Progress::beginning(options), skipped(options, R::UNIT)?);
        let mut size = BatchSize::new(options.batch);
        let mut batch = Batch::new();
        loop {
            let is_last = read_batch(&mut source, skipped, &mut batch, size.get())?;
            while !batch.is_empty() {
                let count = size.transact(store, |txn, most| {
                    let (mut vertices, mut edges, mut count) = (Vec::new(), Vec::new(), 0);
                    for (_, item) in batch.iter().take(most) {
                        match item {
                            Item::Vertex(vertex) => vertices.push(vertex),
                            Item::Edge(edge) => edges.push(edge.clone()),
                        }
                        count += 1;
                    }
                    // Each call costs a get, even without records.
                    if !vertices.is_empty() {
                        self.vertices().put_many(txn, vertices)?;
                    }
                    if !edges.is_empty() {
                        self.put_edges(txn, edges)?;
                    }
                    Ok(count)
                })?;
                let last = batch.drain(..count).next_back();
                done.position.last = last.map(|(number, _)| pack(&(R::UNIT, number)));
                done.records += count as u64;
                done.finished = is_last && batch.is_empty();
                if progress(&done).is_break() {
                    return Ok(done);
                }
            }
            if is_last {
                if source.number() <= skipped {
                    return Err(bad_position(skipped, "it is after the end of the input"));
                }
                done.finished = true;
                return Ok(done);
            }
        }
    }
}

/// Reads the items of the next transaction. Returns whether the input has ended.
fn read_batch<I, V, E>(
    source: &mut impl Source<I, V, E>,
    skipped: u64,
    batch: &mut Batch<I, V, E>,
    most: usize,
) -> Result<bool> {
    let begun = source.bytes();
    while batch.len() < most && source.bytes() - begun < BATCH_BYTES {
        let Some(item) = source.next_item(skipped)? else { return Ok(true) };
        batch.push((source.number(), item));
    }
    Ok(false)
}

/// The number of items that an earlier import has committed, from the position in the options.
fn skipped(options: &RepairOptions, unit: &str) -> Result<u64> {
    let Some(position) = &options.resume else { return Ok(0) };
    let Some(last) = &position.last else { return Ok(0) };
    match unpack::<(&str, u64)>(last) {
        Ok((of, number)) if of == unit => Ok(number),
        _ => Err(bad_position("of other work", "take the position of the same import")),
    }
}

fn bad_position(value: impl Display, why: &'static str) -> Error {
    Error::InvalidArgument {
        what: "the position at which to resume",
        value: value.to_string(),
        why,
    }
}

/// The beginning of a text, for a message.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The id in a text; `what` names the text, such as `source`.
pub(crate) fn id<I: FromStr<Err: Display>>(
    what: &str,
    text: &str,
) -> std::result::Result<I, String> {
    if text.is_empty() {
        return Err(format!("has an empty {what}"));
    }
    text.parse()
        .map_err(|error| format!("has the {what} {:?}, which is not an id: {error}", shown(text)))
}
