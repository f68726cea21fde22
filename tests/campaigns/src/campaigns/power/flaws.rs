//! Traces of stores with flaws.

use super::job::Flaw;
use super::trace::{Event, Name};

/// Changes a trace to that of a store with this flaw.
pub fn apply(flaw: Flaw, mut events: Vec<Event>) -> Vec<Event> {
    match flaw {
        // These flaws are in the contents and in the program.
        Flaw::None | Flaw::OtherContents | Flaw::AnswerInBody => {}
        Flaw::DataNotSynced => events.retain(|event| !matches!(event, Event::Synced)),
        Flaw::MetaNotSynced => events.retain(|event| !matches!(event, Event::Waited { .. })),
        Flaw::NamesNotSynced => events.retain(|event| !matches!(event, Event::NameSynced(_))),
        Flaw::FlushNotSynced => {
            // From the end: whether there was a sync between the last write and the
            // acknowledgement.
            let mut is_flush = false;
            events.reverse();
            events.retain(|event| {
                match event {
                    Event::Flushed(_) => is_flush = true,
                    Event::Synced => return !is_flush,
                    Event::NameSynced(_) => {}
                    _ => is_flush = false,
                }
                true
            });
            events.reverse();
        }
        Flaw::NamedEarly => {
            let is_named = |event: &Event| matches!(event, Event::Named(Name::File));
            let is_write = |event: &Event| matches!(event, Event::Write { .. });
            let named = events.iter().position(is_named);
            let written = events.iter().position(is_write);
            if let (Some(named), Some(written)) = (named, written.filter(|at| Some(*at) < named)) {
                events[written..=named].rotate_right(1);
            }
        }
        Flaw::MetaBeforeData => {
            // ..., Synced, Write, Waited: moves the first event to the end.
            for at in 2..events.len() {
                if matches!(events[at - 2..=at], [Event::Synced, _, Event::Waited { .. }]) {
                    events[at - 2..=at].rotate_left(1);
                }
            }
        }
        Flaw::EarlyAnswer => {
            // Write, Waited, and the acknowledgements of all threads of the commit, which are moved
            // to the front.
            for at in 1..events.len() {
                let mut write = at - 1;
                if !matches!(events[at], Event::Waited { .. }) {
                    continue;
                }
                for next in at + 1..events.len() {
                    match events[next] {
                        Event::Acknowledged(_) => {
                            events[write..=next].rotate_right(1);
                            write += 1;
                        }
                        Event::Begun { .. } => {}
                        _ => break,
                    }
                }
            }
        }
    }
    events
}
