//! Heat map: shaded rows of an amount, by name and by time. A darker shade is a larger amount.

use plotters::prelude::Rectangle;
use plotters::style::Color as _;

use crate::chart::axis::Axis;
use crate::chart::number::grouped;
use crate::chart::palette::SHADES;
use crate::chart::text::{self, Stand, pixels};
use crate::chart::{Area, Caption, Chart, Drawn, WIDTH, draw};

const ROW: i32 = 44;
const HEAD: i32 = 176;
const FOOT: i32 = 100;
/// Width for names.
const BESIDE: i32 = 300;
const RIGHT: i32 = 60;
/// Most characters of a name that fit.
const NAME_MAX: usize = 16;

/// Heat map before it is drawn.
#[derive(Clone, Debug)]
pub struct HeatChart {
    /// Name and texts.
    pub caption: Caption,
    /// Axis from left to right.
    pub across: Axis,
    /// Label of that axis.
    pub across_is: String,
    /// Label of the shades: `waiting visitors`.
    pub shaded_is: String,
    /// Rows from top to bottom: a name, and a number for each column; columns are equally wide.
    pub rows: Vec<(String, Vec<u32>)>,
    /// Value of the darkest shade; equal in charts that are compared.
    pub most: u32,
}

impl HeatChart {
    /// Draws the chart.
    pub fn draw(self) -> Chart {
        let rows = i32::try_from(self.rows.len()).unwrap_or(i32::MAX);
        let height = (HEAD + rows.saturating_mul(ROW) + FOOT).unsigned_abs();
        let caption = self.caption.clone();
        draw(caption, height, |area| {
            text::write_title(area, &self.caption.title)?;
            self.draw_key(area)?;
            let mut top = HEAD;
            for (name, values) in &self.rows {
                let name = text::cut(name, NAME_MAX);
                text::write(area, &name, (BESIDE - 14, top + ROW / 2), Stand::LeftOf)?;
                self.draw_row(area, values, top)?;
                top += ROW;
            }
            self.draw_axis(area, top)
        })
    }

    fn width() -> i32 {
        i32::try_from(WIDTH).unwrap_or(i32::MAX) - BESIDE - RIGHT
    }

    /// Draws a row; adjacent columns of one shade are one rectangle.
    fn draw_row(&self, area: &Area<'_>, values: &[u32], top: i32) -> Drawn {
        let columns = i32::try_from(values.len()).unwrap_or(i32::MAX).max(1);
        let edge = |column: i32| BESIDE + Self::width() * column / columns;
        let mut column = 0;
        for run in values.chunk_by(|a, b| self.shade(*a) == self.shade(*b)) {
            let next = column + i32::try_from(run.len()).unwrap_or(i32::MAX);
            let shade = run.first().map_or(0, |value| self.shade(*value));
            let corners = [(edge(column), top + 2), (edge(next), top + ROW - 2)];
            area.draw(&Rectangle::new(corners, SHADES[shade].filled()))?;
            column = next;
        }
        Ok(())
    }

    /// Returns the shade of a number: only 0 has the lightest.
    fn shade(&self, value: u32) -> usize {
        let shades = u32::try_from(SHADES.len() - 1).unwrap_or(u32::MAX);
        let most = u64::from(self.most.max(1));
        let step = (u64::from(value) * u64::from(shades)).div_ceil(most);
        usize::try_from(step.min(u64::from(shades))).unwrap_or(0)
    }

    /// Draws the key of the shades: 0, then fifths of the most.
    fn draw_key(&self, area: &Area<'_>) -> Drawn {
        let steps = SHADES.len() - 1;
        text::write(area, &self.shaded_is, (20, 82), Stand::RightOf)?;
        let (mut x, y) = (20, 128);
        for (at, colour) in SHADES.iter().enumerate() {
            let upper = u64::from(self.most.max(1)) * u64::try_from(at).unwrap_or(0);
            let upper = upper / u64::try_from(steps).unwrap_or(1);
            let name = match at {
                0 => "0".to_owned(),
                _ => format!("to {}", grouped(upper)),
            };
            let square = [(x, y - 16), (x + 32, y + 16)];
            area.draw(&Rectangle::new(square, colour.filled()))?;
            text::write(area, &name, (x + 42, y), Stand::RightOf)?;
            x += 42 + text::width(&name, text::LABEL) + 18;
        }
        Ok(())
    }

    fn draw_axis(&self, area: &Area<'_>, top: i32) -> Drawn {
        for (at, label) in self.across.ticks() {
            let x = BESIDE + pixels(f64::from(Self::width()) * self.across.position(*at));
            text::write(area, label, (x, top + 26), Stand::Middle)?;
        }
        let middle = BESIDE + Self::width() / 2;
        text::write(area, &self.across_is, (middle, top + 70), Stand::Middle)
    }
}
