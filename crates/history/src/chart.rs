//! Charts as SVG text: lines over an axis, shaded rows, bars with marks. Also numbers for readers.
//!
//! Charts know nothing of rooms, limits and runs: callers prepare numbers and names. The same input
//! gives the same bytes on every machine. Browsers have their own fonts, so widths of texts are
//! generous estimates.
//!
//! Charts are drawn at twice the size that is shown, because the library has whole pixels only.

pub mod axis;
pub mod bars;
pub mod escape;
pub mod heat;
pub mod line;
pub mod number;
pub mod palette;
mod text;

use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::prelude::SVGBackend;
use plotters::style::WHITE;
use text::clean;

/// Width of every chart, in drawn pixels.
const WIDTH: u32 = 1280;
/// Drawn pixels per shown pixel.
const SHOWN: u32 = 2;
/// Mark in every file by which a later run knows that it may overwrite it.
pub const MARK: &str = "<!-- anteroom simulate -->";

/// Finished chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Name of its file: `1-inside.svg`.
    pub file_name: String,
    /// Title of a few words.
    pub title: String,
    /// Description for readers who cannot see the chart.
    pub description: String,
    /// SVG document.
    pub svg: String,
}

/// Name and texts of a chart.
#[derive(Clone, Debug)]
pub struct Caption {
    /// Name of its file, `1-inside.svg`: letters, digits and hyphens.
    pub file_name: String,
    /// Title of a few words.
    pub title: String,
    /// Description for readers who cannot see the chart.
    pub description: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type DrawError = DrawingAreaErrorKind<std::io::Error>;
type Drawn = Result<(), DrawError>;

/// Draws on a white area of this height and adds the caption.
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

/// Replaces the opening tag by one that scales, and adds texts for screen readers.
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
