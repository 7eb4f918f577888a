//! Which colour and which mark stand for what? Always both: no line is told apart by colour alone.
//!
//! Colours after Okabe and Ito, who chose them so that they differ for colour-blind readers too;
//! two are darkened so that each has a contrast of at least 3 : 1 on white.

use anteroom_core::rules::AllocationKind;
use plotters::style::RGBColor;

/// Text, axes, limits.
pub(crate) const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Lines of the grid.
pub(crate) const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// What is there for comparison only.
pub(crate) const BACKDROP: RGBColor = RGBColor(0xc8, 0xc8, 0xc8);
/// From nothing to the most: lighter to darker, in one hue.
pub(crate) const SHADES: [RGBColor; 6] = [
    RGBColor(0xf2, 0xf2, 0xf2),
    RGBColor(0xc6, 0xdb, 0xef),
    RGBColor(0x9e, 0xca, 0xe1),
    RGBColor(0x4d, 0x9c, 0xcb),
    RGBColor(0x1f, 0x6a, 0xad),
    RGBColor(0x08, 0x30, 0x6b),
];

/// A line's looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    /// Its colour.
    pub(crate) colour: RGBColor,
    /// What stands on it every now and then.
    pub(crate) mark: Mark,
    /// Broken, for what is no measurement: a limit, a wish.
    pub(crate) is_dashed: bool,
}

/// A small figure on a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
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
pub(crate) const LIMIT: Look = Look {
    colour: INK,
    mark: Mark::None,
    is_dashed: true,
};

/// The looks of an allocation, the same in all charts.
pub(crate) const fn look(kind: AllocationKind) -> Look {
    let (colour, mark) = match kind {
        AllocationKind::Even => (RGBColor(0xd5, 0x5e, 0x00), Mark::Triangle),
        AllocationKind::Curve => (RGBColor(0x88, 0x2e, 0x72), Mark::Cross),
        AllocationKind::Counters => (RGBColor(0x00, 0x80, 0x60), Mark::Dot),
        AllocationKind::Leases => (RGBColor(0x00, 0x72, 0xb2), Mark::None),
    };
    Look {
        colour,
        mark,
        is_dashed: false,
    }
}
