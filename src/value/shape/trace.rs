//! The passes of a trace.
//!
//! A pass runs the `Deserialize` of the record type once. The parts of a type can only be reached
//! through the type itself. So each pass begins at the record and steers to unknown parts: it
//! answers with `Some` or one element where unknown parts are below, and with `None`, no element or
//! the smallest variant elsewhere. A type that refuses an answer gets another one in the next pass.
//!
//! The crate `serde-reflection` works in this way. It identifies types by their names, so it cannot
//! distinguish two types with the same name. It also stops at the first type whose visitor refuses
//! an answer.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::de::DeserializeOwned;

use super::Shape;
use super::draft::NodeId;
use super::finish::finish;
use super::requests::At;
use super::tracer::{How, Tracer};
use crate::Result;

/// The largest number of passes without new results before a trace ends.
// With fewer passes, a trace may miss parts that only rare answers reveal. More passes make each
// trace longer.
const MOST_IN_VAIN: usize = 64;
/// The largest number of passes. A typical type needs fewer, since nearly every pass finds a part
/// or a refusal.
const MOST_PASSES: usize = 20_000;
/// The number of passes with other values after all parts are known. These passes find types whose
/// parts depend on a value.
const VARIED: usize = 4;

pub(crate) fn trace<V: DeserializeOwned>(how: How) -> Result<Shape> {
    let tracer = Tracer { how, state: RefCell::default() };
    let root = tracer.node_of::<std::marker::PhantomData<V>, V>(None)?;
    let (mut passes, mut in_vain) = (0, 0);
    while passes < MOST_PASSES && in_vain < MOST_IN_VAIN && tracer.begin_pass(in_vain, 0) {
        passes += 1;
        let is_ok = tracer.pass::<V>(root)?;
        tracer.end_pass(is_ok);
        in_vain = if tracer.state.borrow().has_news { 0 } else { in_vain + 1 };
    }
    for variation in 1..=VARIED {
        tracer.begin_pass(0, variation);
        // A refusal does not matter any more.
        tracer.pass::<V>(root)?;
    }
    finish(how, &tracer.state.borrow().nodes)
}

impl Tracer {
    /// Runs the `Deserialize` of the record once. Returns whether it accepted all answers.
    ///
    /// # Errors
    /// The error of a type whose shape cannot be found.
    fn pass<V: DeserializeOwned>(&self, root: NodeId) -> Result<bool> {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            self.enter(root)?;
            let result = V::deserialize(At::new(self, root)).map(drop);
            self.leave(root, result.is_err());
            result
        }));
        match self.with(|state| state.failure.take()) {
            Some(failure) => Err(failure),
            None => Ok(matches!(outcome, Ok(Ok(())))),
        }
    }
}
