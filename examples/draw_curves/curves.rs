//! The two curves, through a grid of 8 by 8 cells.

use keyloom_patterns::general::dimensionality_reduction::curve::{Hilbert, Morton};

use crate::Drawn;
use crate::card::Card;

/// The bits of a coordinate.
const ORDER: u32 = 3;
/// Of a cell, in pixels.
const SIDE: u32 = 38;
const TOP: u32 = 34;

pub fn picture() -> Drawn<String> {
    let mut card = Card::new(
        700,
        372,
        "The Z-order curve and the Hilbert curve",
        "Both curves through 8 by 8 cells. The Z-order curve leaps where a square ends and the next one begins; \
         the Hilbert curve always goes on in a neighbouring cell.",
    );
    let hilbert = Hilbert::new(ORDER)?;
    draw(&mut card, 20, "Z-order", Morton::<2>::decode);
    draw(&mut card, 376, "Hilbert", |code| hilbert.decode(code));
    card.text(
        20,
        362,
        "From the cell at the lower left on; a leap to a cell that is no neighbour is dashed.",
    );
    Ok(card.finish())
}

fn draw(card: &mut Card, left: u32, title: &str, cell: impl Fn(u64) -> [u32; 2]) {
    let cells = 1 << ORDER;
    let side = SIDE * cells;
    card.text(left, TOP - 12, title);
    let lines = (0..=cells).map(|n| n * SIDE);
    let grid =
        lines.map(|at| format!("M{left} {y}h{side}M{x} {TOP}v{side}", y = TOP + at, x = left + at));
    card.path("grid", grid.collect());
    let middle = |[x, y]: [u32; 2]| {
        let down = cells - 1 - y;
        (left + x * SIDE + SIDE / 2, TOP + down * SIDE + SIDE / 2)
    };
    let (mut steps, mut leaps) = (String::new(), String::new());
    for code in 1..u64::from(cells * cells) {
        let (from, to) = (cell(code - 1), cell(code));
        let line = |((x, y), (to_x, to_y))| format!("M{x} {y}L{to_x} {to_y}");
        let way: u32 = from.iter().zip(to).map(|(from, to)| from.abs_diff(to)).sum();
        let drawn = if way == 1 { &mut steps } else { &mut leaps };
        drawn.push_str(&line((middle(from), middle(to))));
    }
    card.path("leap", leaps);
    card.path("curve", steps);
    let (x, y) = middle(cell(0));
    card.path("start", format!("M{x} {y}h0"));
}
