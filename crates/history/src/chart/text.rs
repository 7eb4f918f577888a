//! Position and width of text in charts. Widths are estimates, because no font is available.

use plotters::prelude::Text;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, IntoFont as _, TextStyle};

use crate::chart::escape::escape;
use crate::chart::palette::INK;
use crate::chart::{Area, Drawn};

/// Size of labels in drawn pixels.
pub(crate) const LABEL: f64 = 28.0;
/// Size of a chart's title in drawn pixels.
pub(crate) const TITLE: f64 = 34.0;
/// Mean width of a character over its size: wider than common sans-serif fonts (0.5 to 0.55), so
/// that a text that fits here fits in a browser.
const CHARACTER: f64 = 0.58;
/// Divisor that the library applies to every size before it writes it.
const LIBRARY_FACTOR: f64 = 1.24;

/// Returns the largest width of `text`, in drawn pixels.
pub(crate) fn width(text: &str, size: f64) -> i32 {
    let characters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    pixels(f64::from(characters) * CHARACTER * size)
}

/// Rounds up to whole pixels.
#[expect(
    clippy::cast_possible_truncation,
    reason = "pixels of a chart; a cast of a float saturates"
)]
pub(crate) fn pixels(length: f64) -> i32 {
    length.ceil() as i32
}

/// Returns `text` cut to so many characters, the last of them `…` if it was longer.
pub(crate) fn cut(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    let kept = text.chars().take(characters_max.saturating_sub(1));
    kept.chain(std::iter::once('…')).collect()
}

/// Returns text for use between tags: escaped, and without control characters, which XML cannot
/// contain.
pub(crate) fn clean(text: &str) -> String {
    escape(&without_controls(text))
}

/// Removes the characters that XML cannot contain.
fn without_controls(text: &str) -> String {
    let is_fit = |c: char| !c.is_control() && !('\u{fffe}'..='\u{ffff}').contains(&c);
    text.chars()
        .map(|c| if is_fit(c) { c } else { ' ' })
        .collect()
}

/// Alignment of a text to its point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stand {
    /// Right of the point.
    RightOf,
    /// Left of the point.
    LeftOf,
    /// Centred on the point.
    Middle,
}

/// Returns a style for labels, ink on white.
pub(crate) fn style(size: f64, stand: Stand) -> TextStyle<'static> {
    styled(size, stand, FontStyle::Normal)
}

fn styled(size: f64, stand: Stand, font: FontStyle) -> TextStyle<'static> {
    let across = match stand {
        Stand::RightOf => HPos::Left,
        Stand::LeftOf => HPos::Right,
        Stand::Middle => HPos::Center,
    };
    let font = ("sans-serif", size * LIBRARY_FACTOR)
        .into_font()
        .style(font);
    TextStyle::from(font)
        .color(&INK)
        .pos(Pos::new(across, VPos::Center))
}

/// Writes a label; `at` is its middle in height.
pub(crate) fn write(area: &Area<'_>, text: &str, at: (i32, i32), stand: Stand) -> Drawn {
    area.draw(&Text::new(without_controls(text), at, style(LABEL, stand)))
}

/// Writes a chart's title into its upper left corner.
pub(crate) fn write_title(area: &Area<'_>, text: &str) -> Drawn {
    let style = styled(TITLE, Stand::RightOf, FontStyle::Bold);
    let fits = 60;
    area.draw(&Text::new(
        without_controls(&cut(text, fits)),
        (20, 32),
        style,
    ))
}
