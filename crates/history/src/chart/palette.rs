//! Colours and marks. Each line has both, so that no line differs by colour alone.
//!
//! Colours after Okabe and Ito, which colour-blind readers can tell apart. Two are darkened so that
//! each has a contrast of at least 3 : 1 on white.

pub use plotters::style::RGBColor as Colour;

/// Colour of text, axes and limits.
pub const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Colour of grid lines.
pub const GRID: Colour = Colour(0xdd, 0xdd, 0xdd);
/// Colour of values that are there for comparison only.
pub const BACKDROP: Colour = Colour(0xc8, 0xc8, 0xc8);
/// First colour of lines: vermilion. Blue, green and purple follow.
pub const ORANGE: Colour = Colour(0xd5, 0x5e, 0x00);
/// Second colour of lines.
pub const BLUE: Colour = Colour(0x00, 0x72, 0xb2);
/// Third colour of lines.
pub const GREEN: Colour = Colour(0x00, 0x80, 0x60);
/// Fourth colour of lines.
pub const PURPLE: Colour = Colour(0x88, 0x2e, 0x72);
/// Colour of true values, beside estimates.
pub const GREY: Colour = Colour(0x86, 0x86, 0x86);
/// Shades from zero to the most: lighter to darker, in one hue.
pub const SHADES: [Colour; 6] = [
    Colour(0xf2, 0xf2, 0xf2),
    Colour(0xc6, 0xdb, 0xef),
    Colour(0x9e, 0xca, 0xe1),
    Colour(0x4d, 0x9c, 0xcb),
    Colour(0x1f, 0x6a, 0xad),
    Colour(0x08, 0x30, 0x6b),
];

/// Looks of a line.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colour of the line.
    pub colour: Colour,
    /// Mark that is repeated on the line.
    pub mark: Mark,
    /// Whether the line is dashed: for a limit or an ideal, which is no measurement.
    pub is_dashed: bool,
}

/// Mark on a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mark {
    /// Line without a mark.
    None,
    /// Filled circle.
    Dot,
    /// Filled triangle.
    Triangle,
    /// Two crossed strokes.
    Cross,
}

/// Looks of a limit.
pub const LIMIT: Look = Look {
    colour: INK,
    mark: Mark::None,
    is_dashed: true,
};
