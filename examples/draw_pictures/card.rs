//! A picture with a light background of its own, so that it is legible on a page of any colour.

use svg::Document;
use svg::node::Node;
use svg::node::element::{Description, Path, Rectangle, Style, Text, Title};

/// Colours: entries that are checked one by one are amber, entries that are accepted without a
/// check are green, entries that are read but not part of the result are red.
const STYLE: &str = "\
text{font:13px sans-serif;fill:#2b2b2b}\
path{fill:none}\
.inside{fill:#a9d3b8}.across{fill:#f6dfa4}.gap{fill:#ecd3d0}\
.edges{stroke:#8a8474;stroke-width:.5}\
.grid{stroke:#d8d2c4;stroke-width:1}\
.area{stroke:#1f5fa8;stroke-width:2}\
.curve{stroke:#1f5fa8;stroke-width:2.5;stroke-linejoin:round;stroke-linecap:round}\
.leap{stroke:#c0392b;stroke-width:1.2;stroke-dasharray:4 3}\
.meridian{stroke:#2b2b2b;stroke-width:1.2;stroke-dasharray:2 5}\
.start{stroke:#14532d;stroke-width:10;stroke-linecap:round}\
.dots{stroke-width:3;stroke-linecap:round}\
.found{stroke:#14532d}.vain{stroke:#c0392b}.unread{stroke:#b9b3a5}";

const BACKGROUND: &str = "#fffdf8";

/// A picture under construction.
pub struct Card {
    document: Document,
}

impl Card {
    /// A picture with a title and a description for screen readers.
    pub fn new(width: u32, height: u32, title: &str, description: &str) -> Self {
        let mut document = Document::new()
            .set("viewBox", (0, 0, width, height))
            .set("width", width)
            .set("height", height)
            .set("role", "img");
        document.append(Title::new(title));
        document.append(Description::new().add(svg::node::Text::new(description)));
        document.append(Style::new(STYLE));
        let mut card = Self { document };
        card.blank(0, 0, width, height);
        card
    }

    /// Covers a rectangle with the background colour.
    pub fn blank(&mut self, x: u32, y: u32, width: u32, height: u32) {
        let blank = Rectangle::new().set("x", x).set("y", y).set("width", width);
        self.document.append(blank.set("height", height).set("fill", BACKGROUND));
    }

    /// Adds a path with a class of the style, unless `data` is empty.
    pub fn path(&mut self, class: &str, data: String) {
        if !data.is_empty() {
            self.document.append(Path::new().set("class", class).set("d", data));
        }
    }

    pub fn text(&mut self, x: u32, y: u32, text: &str) {
        self.document.append(Text::new(text).set("x", x).set("y", y));
    }

    /// Swatches of the classes of cells, with their meanings.
    pub fn legend(&mut self, y: u32) {
        let swatches = [
            (10, "inside edges", "taken as read"),
            (130, "across edges", "looked at one by one"),
            (300, "gap edges", "a gap, read or leapt over"),
        ];
        for (x, class, text) in swatches {
            self.path(class, format!("M{x} {}h14v12h-14z", y - 11));
            self.text(x + 20, y, text);
        }
    }

    pub fn finish(self) -> String {
        self.document.to_string() + "\n"
    }
}
