//! How is a chart drawn? Lines over an axis, shaded rows, bars with marks: SVG as text. And what
//! stands beside charts: numbers as people write them, and files that overwrite nothing of others.
//!
//! Charts know nothing of rooms, limits and runs: who calls them has prepared numbers and names.
//! The same input gives the same bytes on every machine. No font is measured (the reader's browser
//! has its own), so widths of texts are estimated on the generous side.
//!
//! Everything is drawn at twice the size that is shown, because the library has whole pixels only.

pub mod axis;
pub mod bars;
pub mod escape;
pub mod files;
pub mod heat;
pub mod line;
pub mod number;
pub mod palette;
pub mod story;
mod text;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::prelude::SVGBackend;
use plotters::style::WHITE;
use text::clean;

/// Width of every chart, in drawn pixels.
const WIDTH: u32 = 1280;
/// Shown pixels are half as many.
const SHOWN: u32 = 2;
/// Stands in every file, so that a later run knows that it may overwrite it.
pub const MARK: &str = "<!-- anteroom simulate -->";

/// A finished chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// `1-inside.svg`.
    pub file_name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What there is to see, for those who cannot see it.
    pub description: String,
    /// The SVG document.
    pub svg: String,
}

/// What names a chart and explains it.
#[derive(Clone, Debug)]
pub struct Caption {
    /// `1-inside.svg`; letters, digits and hyphens.
    pub file_name: String,
    /// What it shows, in a few words.
    pub title: String,
    /// What there is to see, for those who cannot see it.
    pub description: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawError = DrawingAreaErrorKind<std::io::Error>;
type Drawn = Result<(), DrawError>;

/// Draws on a white sheet of this height and signs it.
fn draw(caption: Caption, height: u32, paint: impl FnOnce(&Area<'_>) -> Drawn) -> Chart {
    let mut body = String::new();
    {
        let area = SVGBackend::with_string(&mut body, (WIDTH, height)).into_drawing_area();
        area.fill(&WHITE)
            .and_then(|()| paint(&area))
            .and_then(|()| area.present())
            .expect("writing to a string cannot fail, and every area is large enough");
    }
    let svg = sign(&body, &caption, height);
    Chart {
        file_name: caption.file_name,
        title: caption.title,
        description: caption.description,
        svg,
    }
}

/// Replaces the opening tag by one that scales, and adds what screen readers read.
fn sign(body: &str, caption: &Caption, height: u32) -> String {
    let rest = body.split_once('\n').map_or("", |(_, rest)| rest);
    let id = caption.file_name.trim_end_matches(".svg");
    let (width, shown_height) = (WIDTH / SHOWN, height / SHOWN);
    let title = clean(&caption.title);
    let description = clean(&caption.description);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{shown_height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title-{id} text-{id}\">\n\
         {MARK}\n<title id=\"title-{id}\">{title}</title>\n\
         <desc id=\"text-{id}\">{description}</desc>\n\
         {rest}"
    )
}

#[cfg(test)]
mod tests;
