//! A container of a bitmap, in the layout that the documentation of keyloom-bitmaps describes.

/// The number of ids that a chunk covers.
pub const CHUNK_IDS: u64 = 32_512;
/// The number of parts of a chunk whose ids are counted for a drawing.
pub const BUCKETS: usize = 32;

/// The number of ids of a block in the form `blocks`, and the number of these blocks.
const BLOCK_IDS: u16 = 256;
const BLOCKS: usize = 127;
/// The number of bytes of a block that is a bitmap.
const BITMAP: usize = 32;

/// A container, read without a check of the order of its ids.
pub struct Container {
    /// `array`, `runs`, `blocks` or `bitset`.
    pub form: &'static str,
    /// The number of ids.
    pub ids: u64,
    /// The numbers of ids in equal parts of the chunk.
    pub buckets: [u32; BUCKETS],
}

/// The container with these bytes. `None` if they are not a container.
pub fn container(bytes: &[u8]) -> Option<Container> {
    let (first, rest) = bytes.split_first()?;
    let (form, offsets) = match first {
        0x11 => ("array", array(rest)?),
        0x12 => ("runs", runs(rest)?),
        0x13 => ("blocks", blocks(rest)?),
        0x14 => ("bitset", bits(rest.get(15..).filter(|words| words.len() == 4_064)?)),
        _ => return None,
    };
    let mut buckets = [0; BUCKETS];
    for offset in &offsets {
        let at = u64::from(*offset) * BUCKETS as u64 / CHUNK_IDS;
        *buckets.get_mut(usize::try_from(at).ok()?)? += 1;
    }
    Some(Container { form, ids: offsets.len() as u64, buckets })
}

fn array(bytes: &[u8]) -> Option<Vec<u16>> {
    let (ids, rest) = bytes.as_chunks();
    rest.is_empty().then(|| ids.iter().map(|id| u16::from_le_bytes(*id)).collect())
}

fn runs(bytes: &[u8]) -> Option<Vec<u16>> {
    let (runs, rest) = bytes.as_chunks();
    let mut ids = Vec::new();
    for [a, b, c, d] in runs {
        let (first, last) = (u16::from_le_bytes([*a, *b]), u16::from_le_bytes([*c, *d]));
        ids.extend(first..=last);
        // Damaged runs overlap, and must not take more memory than a chunk.
        if ids.len() as u64 > CHUNK_IDS {
            return None;
        }
    }
    rest.is_empty().then_some(ids)
}

fn blocks(bytes: &[u8]) -> Option<Vec<u16>> {
    let (lengths, mut content) = bytes.get(2..)?.split_at_checked(BLOCKS)?;
    let mut ids = Vec::new();
    for (length, first) in lengths.iter().zip((0..).step_by(BLOCK_IDS.into())) {
        let (block, rest) = content.split_at_checked((*length).into())?;
        content = rest;
        match block.len() {
            BITMAP => ids.extend(bits(block).iter().map(|id| first + id)),
            0..BITMAP => ids.extend(block.iter().map(|id| first + u16::from(*id))),
            _ => return None,
        }
    }
    content.is_empty().then_some(ids)
}

/// The numbers of the bits that are set, the lowest bit of each byte first.
fn bits(bytes: &[u8]) -> Vec<u16> {
    let of_byte = |(byte, first): (&u8, u16)| {
        let byte = *byte;
        (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| first + bit)
    };
    bytes.iter().zip((0..).step_by(8)).flat_map(of_byte).collect()
}
