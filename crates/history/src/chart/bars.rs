//! Bar chart with marks on each bar: a total, and its parts by allocation.

use plotters::prelude::{PathElement, Rectangle};
use plotters::style::Color as _;

use crate::chart::axis::Axis;
use crate::chart::line::draw_mark;
use crate::chart::palette::{BACKDROP, GRID, Look, Mark};
use crate::chart::text::{self, Stand, pixels};
use crate::chart::{Area, Caption, Chart, Drawn, WIDTH, draw};

const ROW: i32 = 64;
/// Vertical distance between the marks of a row, so that equal ones do not hide each other.
const MARK_DISTANCE: i32 = 14;
const HEAD: i32 = 170;
const FOOT: i32 = 100;
/// Width for names.
const BESIDE: i32 = 300;
const RIGHT: i32 = 60;
/// Most characters of a name that fit.
const NAME_MAX: usize = 16;

/// Bar chart before it is drawn.
#[derive(Clone, Debug)]
pub struct BarChart {
    /// Name and texts.
    pub caption: Caption,
    /// Axis from left to right, starting at 0.
    pub across: Axis,
    /// Label of that axis.
    pub across_is: String,
    /// Label of the bars: `came`.
    pub bars_are: String,
    /// Labels of the marks, in the order of every row's marks.
    pub marks: Vec<(String, Look)>,
    /// Rows from top to bottom.
    pub rows: Vec<BarRow>,
}

/// Bar with its marks.
#[derive(Clone, Debug)]
pub struct BarRow {
    /// Name of the bar.
    pub name: String,
    /// Length of the bar.
    pub bar: f64,
    /// Positions of its marks.
    pub marks: Vec<f64>,
}

impl BarChart {
    /// Draws the chart.
    pub fn draw(self) -> Chart {
        let rows = i32::try_from(self.rows.len()).unwrap_or(i32::MAX);
        let bottom = HEAD + rows.saturating_mul(ROW);
        let caption = self.caption.clone();
        draw(caption, (bottom + FOOT).unsigned_abs(), |area| {
            text::write_title(area, &self.caption.title)?;
            self.draw_keys(area)?;
            self.draw_axis(area, bottom)?;
            let mut top = HEAD;
            for row in &self.rows {
                self.draw_row(area, row, top)?;
                top += ROW;
            }
            Ok(())
        })
    }

    fn x(&self, value: f64) -> i32 {
        let width = i32::try_from(WIDTH).unwrap_or(i32::MAX) - BESIDE - RIGHT;
        BESIDE + pixels(f64::from(width) * self.across.position(value))
    }

    fn draw_row(&self, area: &Area<'_>, row: &BarRow, top: i32) -> Drawn {
        let name = text::cut(&row.name, NAME_MAX);
        text::write(area, &name, (BESIDE - 14, top + ROW / 2), Stand::LeftOf)?;
        let corners = [(BESIDE, top + 6), (self.x(row.bar), top + ROW - 6)];
        area.draw(&Rectangle::new(corners, BACKDROP.filled()))?;
        let marks = i32::try_from(self.marks.len()).unwrap_or(1);
        let mut y = top + ROW / 2 - (marks - 1) * MARK_DISTANCE / 2;
        for ((_, look), value) in self.marks.iter().zip(&row.marks) {
            draw_counters(area, *look, (self.x(*value), y))?;
            y += MARK_DISTANCE;
        }
        Ok(())
    }

    fn draw_keys(&self, area: &Area<'_>) -> Drawn {
        let (mut x, mut y) = (20, 78);
        area.draw(&Rectangle::new(
            [(x, y - 16), (x + 60, y + 16)],
            BACKDROP.filled(),
        ))?;
        text::write(area, &self.bars_are, (x + 74, y), Stand::RightOf)?;
        x += 74 + text::width(&self.bars_are, text::LABEL) + 36;
        for (name, look) in &self.marks {
            let wide = 26 + text::width(name, text::LABEL) + 36;
            if x + wide > i32::try_from(WIDTH).unwrap_or(i32::MAX) - 20 {
                (x, y) = (20, y + 44);
            }
            draw_counters(area, *look, (x + 8, y))?;
            text::write(area, name, (x + 28, y), Stand::RightOf)?;
            x += wide;
        }
        Ok(())
    }

    fn draw_axis(&self, area: &Area<'_>, bottom: i32) -> Drawn {
        for (at, label) in self.across.ticks() {
            let x = self.x(*at);
            let line = vec![(x, HEAD), (x, bottom)];
            area.draw(&PathElement::new(line, GRID.stroke_width(2)))?;
            text::write(area, label, (x, bottom + 26), Stand::Middle)?;
        }
        let middle = i32::midpoint(BESIDE, self.x(f64::MAX));
        text::write(area, &self.across_is, (middle, bottom + 70), Stand::Middle)
    }
}

/// Draws a mark, an upright stroke for looks without one.
fn draw_counters(area: &Area<'_>, look: Look, (x, y): (i32, i32)) -> Drawn {
    match look.mark {
        Mark::None => {
            let line = vec![(x, y - 9), (x, y + 9)];
            area.draw(&PathElement::new(line, look.colour.stroke_width(6)))
        }
        _ => draw_mark(area, look, (x, y)),
    }
}
