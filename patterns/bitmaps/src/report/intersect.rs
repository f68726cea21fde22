//! Reports from the inverted index: one scan intersects an audience with every value of a field.

use keyloom::{KeyBuf, KeyRange, Order, Reader, Result, Subspace, pack, unpack};
use keyloom_kit::{Explain, Walk};

use super::window::Window;
use crate::Container;

/// The containers of a field.
#[derive(Clone)]
pub(super) struct Containers<'f> {
    /// The subspace of the containers. In their keys, this prefix is followed by the value and the
    /// chunk.
    pub(super) space: &'f Subspace,
    /// The containers of the selected values.
    pub(super) range: KeyRange<'static>,
    /// Whether all values are selected.
    pub(super) is_whole: bool,
}

impl Containers<'_> {
    /// Whether a packed value is selected.
    pub(super) fn selects(&self, value: &[u8]) -> bool {
        let first_chunk = pack(&0_u64);
        let key = || self.space.prefix().iter().chain(value).chain(&first_chunk[..]).copied();
        self.is_whole || self.range.contains(&key().collect::<KeyBuf>())
    }

    /// Reports each value that ids of the window have, with the number of these ids.
    ///
    /// This is one walk over the containers. It skips the chunks without ids of the window.
    pub(super) fn intersect<R: Reader>(
        &self,
        reader: &R,
        window: &Window,
        mut found: impl FnMut(&[u8], u64) -> Result<()>,
    ) -> Result<Explain> {
        let mut walk = Walk::open(reader, self.range.clone(), Order::Ascending)?;
        let mut at = At { value: Subspace::root(), place: 0, count: 0 };
        let mut found = |at: &At| match at.count {
            0 => Ok(()),
            count => {
                let value = at.value.prefix().get(self.space.prefix().len()..);
                found(value.unwrap_or_default(), count)
            }
        };
        let mut next = walk.step()?;
        while let Some((key, bytes)) = next {
            if at.count == 0 && at.value.prefix().is_empty() || !at.value.contains(&key) {
                found(&at)?;
                let leading = self.space.leading(&key, 1);
                let value = leading.map_err(|error| keyloom::Error::from(error).at(&key))?;
                at = At { value: Subspace::from_bytes(value), place: 0, count: 0 };
            }
            let chunk = unpack::<u64>(key.get(at.value.prefix().len()..).unwrap_or_default());
            let chunk = chunk.map_err(|error| keyloom::Error::from(error).at(&key))?;
            at.place = window.seek(at.place, chunk);
            next = match window.chunk(at.place) {
                Some(wanted) if wanted == chunk => {
                    let container = Container::parse(&bytes).map_err(|error| error.at(&key))?;
                    at.count += u64::from(window.and_count(at.place, container));
                    walk.step()?
                }
                wanted => walk.leave(self.rest(&at.value, wanted))?,
            };
        }
        found(&at)?;
        Ok(walk.explain)
    }

    /// The rest of the range, from the container of a value in the chunk `wanted` on. If `wanted`
    /// is `None`, the rest begins after all containers of the value.
    fn rest(&self, value: &Subspace, wanted: Option<u64>) -> KeyRange<'static> {
        let from: KeyBuf;
        let rest = match wanted {
            Some(chunk) => {
                from = value.pack(&chunk);
                KeyRange::starting_at(&from)
            }
            None => KeyRange::behind(value.prefix()),
        };
        self.range.clone().intersect(rest).into_owned()
    }
}

/// The position of the walk.
struct At {
    /// The key prefix of the value.
    value: Subspace,
    /// The first chunk of the window that is not before the container.
    place: usize,
    /// The number of ids of the window that have the value.
    count: u64,
}
