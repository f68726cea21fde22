//! The state of a trace: the known types, the choice of answers, and the attribution of refusals.

use std::any::TypeId;
use std::cell::RefCell;
use std::collections::HashMap;

use serde::de::DeserializeSeed;

use super::draft::{Content, Draft, Node, NodeId, Presence, Slot, distances, heights};
use super::refused::Refused;
use super::{FieldsBy, MOST_PARTS, type_name};
use crate::{Error, Result};

/// How a format calls a `Deserialize`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub(crate) fields_by: FieldsBy,
    pub(crate) is_human_readable: bool,
}

/// The greatest depth of a value. JSON and MessagePack have the same limit.
const MOST_DEPTH: usize = 128;
/// The largest number of frames of a pass, one for each occurrence of a type: the number of frames
/// can double at each level of a record type.
const MOST_FRAMES: usize = 1 << 21;
/// The number of combinations of answers that a struct or a tuple may refuse.
// With fewer combinations, some types that check their fields are given up although another answer
// would pass. More combinations cost more passes.
const MOST_REFUSALS: usize = 32;

/// The name of a type without the pointer types around it. No codec writes bytes for a pointer.
pub(super) fn bare(name: &str) -> &str {
    // The attribute `deserialize_with` generates this type for one field, and names it after the
    // enclosing type.
    if name.contains("__DeserializeWith") {
        return "deserialize_with";
    }
    // The type by which a derived `Deserialize` identifies variants.
    if let Some((_, of)) = name.split_once("<impl Deserialize<'_> for ") {
        return bare(of.strip_suffix(">__Field").unwrap_or(of));
    }
    let inner = ["Box<", "Rc<", "Arc<"].iter().find_map(|pointer| name.strip_prefix(pointer));
    inner.and_then(|inner| inner.strip_suffix('>')).map_or(name, bare)
}

/// The error for a type whose shape cannot be found.
pub(super) fn untraceable(type_name: &str, why: &'static str) -> Error {
    Error::InvalidArgument { what: "the record type", value: type_name.into(), why }
}

pub(super) const ENDLESS: &str =
    "it has no value: it contains itself without end, or is an enum without variants";
pub(super) const ANY: &str =
    "it can be read only from a format that describes itself; pick the codec MessagePack or Json";
pub(super) const TOO_LARGE: &str = "it has more than 4,096 parts; divide it, or declare the table with the codec `Declared<Postcard, 1>`";

pub(super) struct Tracer {
    pub(super) how: How,
    pub(super) state: RefCell<State>,
}

/// The cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The error is explained: it was expected, or it has led to a new result.
    Explained,
    Refusal(NodeId),
}

#[derive(Default)]
pub(super) struct State {
    pub(super) nodes: Vec<Node>,
    ids: HashMap<(TypeId, Option<String>), NodeId>,
    parts: usize,
    /// The open frames of this pass.
    stack: Vec<NodeId>,
    /// For each node, at the beginning of the pass: the number of steps to the nearest incomplete
    /// type, if there is one below. `heights` contains the depths of the smallest values.
    distances: Vec<Option<u32>>,
    heights: Vec<Option<u32>>,
    cause: Option<Cause>,
    /// The open frames at the time of the first error.
    failed_in: Vec<NodeId>,
    pub(super) has_news: bool,
    pub(super) failure: Option<Error>,
    pub(super) pass: usize,
    pub(super) in_vain: usize,
    /// If not 0, varies the answers below a type that has refused a combination of answers.
    variation: usize,
    /// Whether all parts are known, so that the pass varies the answers to known requests.
    is_varied: bool,
    answers: usize,
    frames: usize,
}

impl Tracer {
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.borrow_mut())
    }

    /// Prepares the next pass. Returns `false` if all parts are known.
    pub(super) fn begin_pass(&self, in_vain: usize, variation: usize) -> bool {
        let by = self.how.fields_by;
        self.with(|state| {
            state.stack.clear();
            state.nodes.iter_mut().for_each(|node| node.active = 0);
            (state.cause, state.has_news, state.in_vain) = (None, false, in_vain);
            state.pass += 1;
            (state.variation, state.is_varied) = (variation, variation > 0);
            (state.answers, state.frames) = (0, 0);
            state.heights = heights(&state.nodes);
            state.distances = distances(&state.nodes, by);
            state.distance(0).is_some()
        })
    }

    /// Records the refusal that an error of the pass shows.
    pub(super) fn end_pass(&self, is_ok: bool) {
        self.with(|state| {
            let cause = match state.cause {
                _ if is_ok => return,
                Some(cause) => cause,
                // A panic. It comes from the innermost frame.
                None => {
                    state.failed_in.clone_from(&state.stack);
                    Cause::Refusal(state.stack.last().copied().unwrap_or(0))
                }
            };
            if let Cause::Refusal(node) = cause {
                state.refused(node);
            }
        });
    }

    /// The node of the type that a seed deserializes. `tag` is the tag if the content depends on
    /// one.
    pub(super) fn node_of<S, T: ?Sized>(&self, tag: Option<String>) -> Result<NodeId> {
        let key = (typeid::of::<S>(), tag);
        self.with(|state| {
            if let Some(id) = state.ids.get(&key) {
                return Ok(*id);
            }
            let id = state.add(bare(&type_name::<T>()).into())?;
            state.ids.insert(key, id);
            Ok(id)
        })
    }

    /// The node of the type of a seed.
    pub(super) fn node_of_seed<'de, S: DeserializeSeed<'de>>(
        &self,
        tag: Option<String>,
    ) -> Result<NodeId, Refused> {
        self.or_fail(self.node_of::<S, S::Value>(tag))
    }

    /// Ends the trace if there is an error.
    pub(super) fn or_fail<T>(&self, result: Result<T>) -> Result<T, Refused> {
        result.map_err(|error| {
            self.with(|state| {
                state.failure = Some(error);
                state.cause = Some(Cause::Explained);
            });
            Refused::Message
        })
    }

    pub(super) fn enter(&self, id: NodeId) -> Result<(), Refused> {
        self.with(|state| {
            state.stack.push(id);
            let pass = state.pass;
            if let Some(node) = state.nodes.get_mut(id) {
                node.active += 1;
                node.entered = pass;
            }
            state.frames += 1;
            if state.frames > MOST_FRAMES {
                let name = state.nodes.first().map_or("", |node| &node.name);
                state.failure = Some(untraceable(name, TOO_LARGE));
            } else if state.stack.len() <= MOST_DEPTH {
                return Ok(());
            }
            state.cause = Some(Cause::Explained);
            Err(Refused::Message)
        })
    }

    /// Leaves a type. An error that no type below has caused is attributed to this type.
    pub(super) fn leave(&self, id: NodeId, is_err: bool) {
        if is_err {
            self.blame(id);
        }
        self.with(|state| {
            state.stack.pop();
            if let Some(node) = state.nodes.get_mut(id) {
                node.active = node.active.saturating_sub(1);
            }
        });
    }

    /// Attributes an error to a type, unless it was attributed before.
    pub(super) fn blame(&self, id: NodeId) {
        self.with(|state| {
            if state.cause.is_none() {
                state.cause = Some(Cause::Refusal(id));
                state.failed_in.clone_from(&state.stack);
            }
        });
    }

    /// Returns the result of a visitor unchanged. Attributes its error to the type `id`.
    pub(super) fn of<T>(&self, id: NodeId, result: Result<T, Refused>) -> Result<T, Refused> {
        if result.is_err() {
            self.blame(id);
        }
        result
    }

    /// Whether an error is being propagated that was already attributed.
    pub(super) fn is_attributed(&self) -> bool {
        self.with(|state| state.cause.is_some())
    }

    /// The number of the next answer to a request of `id`, which has `all` possible answers.
    pub(super) fn answer(&self, id: NodeId, all: usize) -> usize {
        self.with(|state| {
            state.answers += 1;
            let refusals = state.nodes.get(id).map_or(0, |node| node.refusals);
            match state.variation {
                0 => refusals % all.max(1),
                // If the answers are varied, the answer also depends on the number of earlier
                // answers in this pass.
                variation => {
                    let mixed = (variation * 31 + state.answers).wrapping_mul(0x9E37_79B9);
                    (refusals + (mixed >> 7) % (variation + 1)) % all.max(1)
                }
            }
        })
    }
}

impl State {
    fn add(&mut self, name: String) -> Result<NodeId> {
        self.count_part()?;
        let node = Node {
            name,
            draft: None,
            refusals: 0,
            refuses: false,
            active: 0,
            entered: 0,
            is_abandoned: false,
        };
        self.nodes.push(node);
        // A new type is incomplete, and is assumed to have a value.
        self.distances.push(Some(0));
        self.heights.push(Some(0));
        self.has_news = true;
        Ok(self.nodes.len() - 1)
    }

    /// Counts parts of a type, so that no type takes too much time or memory.
    pub(super) fn count_parts(&mut self, parts: usize) -> Result<()> {
        self.parts = self.parts.saturating_add(parts);
        match self.parts <= 2 * MOST_PARTS {
            true => Ok(()),
            false => {
                let name = self.nodes.first().map_or("", |node| &node.name);
                Err(untraceable(name, TOO_LARGE))
            }
        }
    }

    fn count_part(&mut self) -> Result<()> {
        self.count_parts(1)
    }

    /// Adds a type without a seed of its own: the type inside an option, or the content of a
    /// variant.
    pub(super) fn add_inner(&mut self, name: String) -> Result<NodeId> {
        self.add(name)
    }

    pub(super) fn node(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    pub(super) fn draft(&mut self, id: NodeId) -> Option<&mut Draft> {
        self.nodes.get_mut(id)?.draft.as_mut()
    }

    pub(super) fn draft_of(&self, id: NodeId) -> Option<&Draft> {
        self.nodes.get(id)?.draft.as_ref()
    }

    pub(super) fn is_active(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| node.active > 0)
    }

    /// Whether the current frame of the type is its outermost one, not inside another frame of the
    /// same type.
    pub(super) fn is_outermost(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| node.active <= 1)
    }

    pub(super) fn is_open(&self, id: NodeId) -> bool {
        self.distance(id).is_some()
    }

    pub(super) fn distance(&self, id: NodeId) -> Option<u32> {
        self.distances.get(id).copied().flatten()
    }

    pub(super) fn height(&self, id: NodeId) -> Option<u32> {
        self.heights.get(id).copied().flatten()
    }

    /// Whether an optional part should be present in the answer.
    pub(super) fn needs(&self, owner: NodeId, part: Slot) -> bool {
        let Some(part) = part else { return true };
        // A part is visited once in a pass: a type that occurs twice on each level occurs 2^n times
        // at depth n.
        let is_new = self.nodes.get(part).is_some_and(|node| node.entered != self.pass);
        if self.is_active(part) || !is_new && self.in_vain % 16 != 15 {
            return false;
        }
        let refusals = self.nodes.get(owner).map_or(0, |node| node.refusals);
        let has_other_answer = refusals % 2 == 1 || self.is_varied;
        self.is_open(part) || self.height(part).is_some() && has_other_answer
    }

    pub(super) fn news(&mut self) {
        self.has_news = true;
    }

    /// Marks the error that is being propagated as explained.
    pub(super) fn explain(&mut self, has_news: bool) {
        self.has_news |= has_news;
        self.cause = Some(Cause::Explained);
    }

    /// Varies the answers below a type that has refused some answers.
    pub(super) fn vary(&mut self, id: NodeId) {
        self.variation += self.nodes.get(id).map_or(0, |node| node.refusals);
    }

    /// Records that a type has refused an answer.
    fn refused(&mut self, id: NodeId) {
        let Some(node) = self.nodes.get_mut(id) else { return };
        if node.refuses {
            return self.give_up_above();
        }
        let answers = match &node.draft {
            None => 1,
            Some(Draft::Leaf(leaf)) => super::probes::answers(*leaf),
            Some(Draft::Any) => super::probes::ANY,
            Some(Draft::Option(_) | Draft::Sequence(_) | Draft::Map(..)) => 4,
            Some(_) => MOST_REFUSALS,
        };
        node.refusals += 1;
        node.refuses = node.refusals >= answers;
        self.has_news = true;
    }

    /// Handles a part that refuses all answers but had to be given. The innermost enclosing type
    /// that can be given up is not tried further: for a struct, all fields then count as required.
    fn give_up_above(&mut self) {
        for id in self.failed_in.clone().into_iter().rev() {
            // The parts after this one in a tuple cannot be visited, so the next pass steers
            // elsewhere.
            let by = FieldsBy::Position;
            let node = self.nodes.get_mut(id).filter(|node| {
                matches!(node.draft, Some(Draft::Tuple(_) | Draft::Map(..)))
                    && !node.is_abandoned
                    && node.is_incomplete(by)
            });
            if let Some(node) = node {
                node.is_abandoned = true;
                return self.news();
            }
            let Some(Draft::Struct(draft)) = self.draft(id) else { continue };
            if draft.names_are_known() && draft.presence != Presence::Known {
                draft.presence = Presence::Known;
                draft.required.iter_mut().for_each(|required| *required = true);
                return self.news();
            }
        }
    }

    /// Records that the chosen variant has made no request and so cannot be read.
    pub(super) fn refuse_variant(&mut self, id: NodeId) -> bool {
        let Some(Draft::Enum(draft)) = self.draft(id) else { return false };
        let chosen = draft.chosen.and_then(|at| draft.variants.get_mut(at));
        match chosen.filter(|one| one.content == Content::Unseen) {
            Some(variant) => {
                variant.content = Content::Refused;
                true
            }
            None => false,
        }
    }
}
