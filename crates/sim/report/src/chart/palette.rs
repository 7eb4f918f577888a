//! Which colour and which mark stand for what? Always both: no line is told apart by colour alone.
//!
//! Colours after Okabe and Ito, who chose them so that they differ for colour-blind readers too;
//! two are darkened so that each has a contrast of at least 3 : 1 on white.

pub use plotters::style::RGBColor as Colour;

/// Text, axes, limits.
pub const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Lines of the grid.
pub const GRID: Colour = Colour(0xdd, 0xdd, 0xdd);
/// What is there for comparison only.
pub const BACKDROP: Colour = Colour(0xc8, 0xc8, 0xc8);
/// Four for lines, in this order: vermilion, blue, green, purple.
pub const ORANGE: Colour = Colour(0xd5, 0x5e, 0x00);
/// The second.
pub const BLUE: Colour = Colour(0x00, 0x72, 0xb2);
/// The third.
pub const GREEN: Colour = Colour(0x00, 0x80, 0x60);
/// The fourth.
pub const PURPLE: Colour = Colour(0x88, 0x2e, 0x72);
/// For what is true, beside what is guessed.
pub const GREY: Colour = Colour(0x86, 0x86, 0x86);
/// From nothing to the most: lighter to darker, in one hue.
pub const SHADES: [Colour; 6] = [
    Colour(0xf2, 0xf2, 0xf2),
    Colour(0xc6, 0xdb, 0xef),
    Colour(0x9e, 0xca, 0xe1),
    Colour(0x4d, 0x9c, 0xcb),
    Colour(0x1f, 0x6a, 0xad),
    Colour(0x08, 0x30, 0x6b),
];

/// A line's looks.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Its colour.
    pub colour: Colour,
    /// What stands on it every now and then.
    pub mark: Mark,
    /// Broken, for what is no measurement: a limit, a wish.
    pub is_dashed: bool,
}

/// A small figure on a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// None.
    None,
    /// A filled circle.
    Dot,
    /// A filled triangle.
    Triangle,
    /// Two strokes.
    Cross,
}

/// Looks of a limit.
pub const LIMIT: Look = Look {
    colour: INK,
    mark: Mark::None,
    is_dashed: true,
};
