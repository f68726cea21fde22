//! The Z-order curve through a grid of 8 by 8 cells.

use keyloom_patterns::spatial::curve::Morton;

use crate::card::Card;

/// The bits of a coordinate.
const ORDER: u32 = 3;
/// The side of a cell, in pixels.
const SIDE: u32 = 38;
const TOP: u32 = 34;

pub fn picture() -> String {
    let mut card = Card::new(
        530,
        372,
        "The Z-order curve",
        "The curve through 8 by 8 cells. It leaps where a square ends and the next one begins.",
    );
    draw(&mut card);
    card.text(
        20,
        362,
        "From the cell at the lower left on; a leap to a cell that is no neighbour is dashed.",
    );
    card.finish()
}

fn draw(card: &mut Card) {
    let (left, cell) = (20, |code: u64| Morton::<2>::decode(code));
    let cells = 1 << ORDER;
    let side = SIDE * cells;
    card.text(left, TOP - 12, "Z-order");
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
