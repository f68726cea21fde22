//! Decodes a posting block by the documented format, without the code of the crate.

use crate::Drawn;

/// Some bytes of a block, and what they mean.
pub struct Part {
    pub at: usize,
    pub bytes: Vec<u8>,
    pub meaning: String,
}

/// A decoded block.
pub struct Block {
    pub last: u32,
    pub docs: Vec<u32>,
    pub freqs: Vec<u32>,
    pub lens: Vec<u32>,
    /// Pairs of frequency and length that bound the scores.
    pub bounds: Vec<(u32, u32)>,
    pub parts: Vec<Part>,
}

/// The part of a block that is not decoded yet.
struct Rest<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Rest<'b> {
    fn take(&mut self, many: usize) -> Drawn<&'b [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(many).ok_or("the block is too short")?;
        self.bytes = rest;
        self.at += many;
        Ok(taken)
    }

    fn byte(&mut self) -> Drawn<u8> {
        Ok(self.take(1)?.first().copied().unwrap_or_default())
    }

    fn varint(&mut self) -> Drawn<u32> {
        let (mut integer, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            integer |= u32::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(integer);
            }
            shift += 7;
        }
    }

    /// Integers of a fixed width, lowest bit first.
    fn packed(&mut self, count: usize, width: u8) -> Drawn<Vec<u32>> {
        let width = usize::from(width);
        let bytes = self.take((count * width).div_ceil(8))?;
        let bit = |n: usize| bytes.get(n / 8).map_or(0, |byte| u32::from(byte >> (n % 8) & 1));
        let integer = |n: usize| (0..width).map(|at| bit(n * width + at) << at).sum();
        Ok((0..count).map(integer).collect())
    }
}

impl Block {
    pub fn decode(all: &[u8], last: u32) -> Drawn<Self> {
        let (mut rest, mut parts) = (Rest { bytes: all, at: 0 }, Vec::<Part>::new());
        let mut note = |rest: &Rest<'_>, meaning: String| {
            let at = parts.last().map_or(0, |part| part.at + part.bytes.len());
            let bytes = all.get(at..rest.at).unwrap_or_default().to_vec();
            parts.push(Part { at, bytes, meaning });
        };
        let flags = rest.byte()?;
        let is_inline = flags & 1 == 1;
        let place = if is_inline { "the positions follow" } else { "the positions are elsewhere" };
        note(&rest, format!("version {}; {place}", flags >> 4));
        let level = rest.byte()?;
        let first = (u64::from(last) + 1 - (1 << level)) as u32;
        note(&rest, format!("level {level}: 2^{level} ids, from {first} to {last}"));
        let count = usize::from(rest.byte()?) + 1;
        note(&rest, format!("{count} postings"));
        let [gap_width, freq_width, len_width] = [rest.byte()?, rest.byte()?, rest.byte()?];
        note(
            &rest,
            format!("{gap_width} bits per gap, {freq_width} per frequency, {len_width} per length"),
        );
        let shortest = rest.varint()?;
        note(&rest, format!("the shortest paragraph has {shortest} tokens"));
        let many = rest.byte()?;
        let bounds = (0..many).map(|_| Ok((rest.varint()?, rest.varint()? + shortest)));
        let bounds = bounds.collect::<Drawn<Vec<_>>>()?;
        let pairs: Vec<String> =
            bounds.iter().map(|(freq, len)| format!("{freq} in {len}")).collect();
        note(&rest, format!("bounds, times in tokens: {}", pairs.join(", ")));
        let mut next = first;
        let docs: Vec<u32> = rest
            .packed(count, gap_width)?
            .into_iter()
            .map(|gap| {
                let doc = next + gap;
                next = doc + 1;
                doc
            })
            .collect();
        note(&rest, format!("gaps: paragraphs {}", list(&docs)));
        let freqs = rest.packed(count, freq_width)?.into_iter().map(|freq| freq + 1);
        let freqs: Vec<u32> = freqs.collect();
        note(&rest, format!("frequencies: {}", list(&freqs)));
        let lens = rest.packed(count, len_width)?.into_iter().map(|len| len + shortest);
        let lens: Vec<u32> = lens.collect();
        note(&rest, format!("lengths: {}", list(&lens)));
        if is_inline {
            let width = rest.byte()?;
            note(&rest, format!("{width} bits per position"));
            let positions = rest.packed(freqs.iter().sum::<u32>() as usize, width)?;
            note(&rest, format!("positions: {}", list(&positions_of(&positions, &freqs))));
        }
        Ok(Self { last, docs, freqs, lens, bounds, parts })
    }
}

/// The positions of each posting: its first one, then the distance of each position to the previous
/// one.
fn positions_of(stored: &[u32], freqs: &[u32]) -> Vec<String> {
    let mut stored = stored.iter();
    let of_posting = |freq: &u32| {
        let mut position = 0;
        let each = stored.by_ref().take(*freq as usize).map(|gap| {
            position += gap;
            position.to_string()
        });
        each.collect::<Vec<_>>().join(",")
    };
    freqs.iter().map(of_posting).collect()
}

fn list<T: ToString>(all: &[T]) -> String {
    all.iter().map(T::to_string).collect::<Vec<_>>().join(" ")
}
