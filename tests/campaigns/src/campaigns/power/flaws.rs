//! Traces of stores that are broken on purpose.

use super::job::Flaw;
use super::trace::Event;

/// What the trace would have been, had the store been broken like this.
pub fn bend(flaw: Flaw, mut events: Vec<Event>) -> Vec<Event> {
    match flaw {
        // This one is in the contents.
        Flaw::None | Flaw::OtherContents => {}
        Flaw::DataNotSynced => events.retain(|event| !matches!(event, Event::Synced)),
        Flaw::MetaNotSynced => events.retain(|event| !matches!(event, Event::Waited { .. })),
        Flaw::NamesNotSynced => events.retain(|event| !matches!(event, Event::NameSynced(_))),
        Flaw::FlushNotSynced => {
            let mut next = events.iter().skip(1);
            let is_flush: Vec<bool> = events
                .iter()
                .map(|event| {
                    let is_before = matches!(next.next(), Some(Event::Flushed(_)));
                    is_before && matches!(event, Event::Synced)
                })
                .collect();
            let mut is_flush = is_flush.into_iter();
            events.retain(|_| !is_flush.next().unwrap_or_default());
        }
        Flaw::MetaBeforeData => {
            // ..., Synced, Write, Waited: the first of them comes last.
            for at in 2..events.len() {
                if matches!(events[at - 2..=at], [Event::Synced, _, Event::Waited { .. }]) {
                    events[at - 2..=at].rotate_left(1);
                }
            }
        }
        Flaw::EarlyAnswer => {
            // Write, Waited, Acknowledged: the last of them comes first.
            for at in 2..events.len() {
                if matches!(events[at - 1..=at], [Event::Waited { .. }, Event::Acknowledged(_)]) {
                    events[at - 2..=at].rotate_right(1);
                }
            }
        }
    }
    events
}
