//! The bytes of a posting block, one part after the other.

use crate::Drawn;
use crate::alice::Paragraphs;
use crate::block::{Block, Part};
use crate::card::Card;

const TERM: &str = "soup";
const WIDTH: u32 = 760;
/// Bytes of a line, and their width.
const PER_LINE: usize = 14;
const BYTE: u32 = 23;
const LINE: u32 = 20;
const BYTES_LEFT: u32 = 46;
const MEANING_LEFT: u32 = BYTES_LEFT + PER_LINE as u32 * BYTE + 14;
/// Characters of a line of a meaning.
const MEANING_CHARS: usize = 48;

pub fn picture(paragraphs: &Paragraphs) -> Drawn<String> {
    let blocks = paragraphs.blocks(TERM)?;
    let [(last, bytes)] = &blocks[..] else { return Err("the term has not one block".into()) };
    let block = Block::decode(bytes, *last)?;
    let all_lines: u32 = block.parts.iter().map(lines).sum();
    let title = format!("The {} bytes of a posting block", bytes.len());
    let mut card = Card::new(
        WIDTH,
        62 + all_lines * LINE,
        &title,
        &format!(
            "The block of the term {TERM:?} in an index of the paragraphs of a book: its bytes in \
             hexadecimal, each part with its meaning."
        ),
    );
    card.text(10, 28, &format!("(\"text\", 2, 0, \"{TERM}\", {last})  →  {} bytes", bytes.len()));
    let mut y = 62;
    for (n, part) in block.parts.iter().enumerate() {
        draw(&mut card, y, part, if n % 2 == 0 { "inside edges" } else { "across edges" });
        y += lines(part) * LINE;
    }
    Ok(card.finish())
}

/// The lines of a meaning, broken at spaces.
fn wrapped(meaning: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in meaning.split(' ') {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.len() + word.len() < MEANING_CHARS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn lines(part: &Part) -> u32 {
    part.bytes.len().div_ceil(PER_LINE).max(wrapped(&part.meaning).len()) as u32
}

fn draw(card: &mut Card, y: u32, part: &Part, class: &str) {
    card.text(10, y, &part.at.to_string());
    for (line, bytes) in (0..).zip(part.bytes.chunks(PER_LINE)) {
        for (column, byte) in (0..).zip(bytes) {
            let [left, top] = [BYTES_LEFT + column * BYTE, y + line * LINE];
            card.path(class, format!("M{left} {}h{BYTE}v{LINE}h-{BYTE}z", top - 15));
            card.text(left + 4, top, &format!("{byte:02x}"));
        }
    }
    for (line, meaning) in (0..).zip(wrapped(&part.meaning)) {
        card.text(MEANING_LEFT, y + line * LINE, &meaning);
    }
}
