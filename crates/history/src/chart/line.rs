//! Line chart with the names of the lines above.

use plotters::chart::ChartBuilder;
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::{
    ChartContext, Circle, Cross, DashedLineSeries, LineSeries, PathElement, SVGBackend,
    TriangleMarker,
};
use plotters::style::{Color as _, ShapeStyle, TRANSPARENT};

use crate::chart::axis::Axis;
use crate::chart::palette::{GRID, INK, Look, Mark};
use crate::chart::text::{self, LABEL, Stand};
use crate::chart::{Area, Caption, Chart, DrawError, Drawn, WIDTH, draw};

/// Height of the part with the lines, in drawn pixels.
const PLOT_HEIGHT: u32 = 560;
/// Height of each row of names.
const ROW: i32 = 46;
/// Top of the names, under the title.
const KEYS_AT: i32 = 58;
/// Width for numbers beside the axis.
const BESIDE: i32 = 140;
/// Number of marks on a line.
const MARKS: usize = 10;
/// Lengths of a dash and of a gap.
const DASH: (i32, i32) = (16, 10);

/// Line chart before it is drawn.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// Name and texts.
    pub caption: Caption,
    /// Axis from left to right.
    pub across: Axis,
    /// Label of that axis: `time of day (UTC)`.
    pub across_is: String,
    /// Axis from bottom to top.
    pub up: Axis,
    /// Label of that axis: `visitors`.
    pub up_is: String,
    /// Lines; later ones are drawn over earlier ones.
    pub lines: Vec<Line>,
}

/// Line of a chart.
#[derive(Clone, Debug)]
pub struct Line {
    /// Name of the line.
    pub name: String,
    /// Colour, mark and dash of the line.
    pub look: Look,
    /// Points in units of the axes, from left to right.
    pub points: Vec<(f64, f64)>,
}

impl LineChart {
    /// Draws the chart.
    pub fn draw(self) -> Chart {
        let keys = place_keys(&self.lines);
        let rows = keys.last().map_or(1, |(_, row)| row + 1);
        let head = KEYS_AT + ROW * (rows + 1);
        let height = PLOT_HEIGHT + head.unsigned_abs();
        let caption = self.caption.clone();
        draw(caption, height, |area| {
            text::write_title(area, &self.caption.title)?;
            for (line, (x, row)) in self.lines.iter().zip(&keys) {
                draw_key(area, line, (*x, KEYS_AT + ROW * row + ROW / 2))?;
            }
            let unit_at = (BESIDE - 10, head - ROW / 2);
            text::write(area, &self.up_is, (unit_at.0, unit_at.1), Stand::RightOf)?;
            let (_, body) = area.split_vertically(head);
            self.draw_plot(area, &body)
        })
    }

    fn draw_plot(&self, sheet: &Area<'_>, area: &Area<'_>) -> Drawn {
        let mut chart = ChartBuilder::on(area)
            .margin_right(60)
            .margin_top(14)
            .margin_bottom(16)
            .x_label_area_size(100)
            .y_label_area_size(BESIDE)
            .build_cartesian_2d(self.across.clone(), self.up.clone())?;
        let label = text::style(LABEL, Stand::Middle);
        chart
            .configure_mesh()
            .bold_line_style(GRID.stroke_width(2))
            .light_line_style(TRANSPARENT)
            .axis_style(INK.stroke_width(2))
            .label_style(label.clone())
            .axis_desc_style(label)
            .x_desc(self.across_is.as_str())
            .draw()?;
        for (at, line) in self.lines.iter().enumerate() {
            draw_line(&mut chart, line)?;
            for place in marked(line, at) {
                draw_mark(sheet, line.look, chart.backend_coord(&place))?;
            }
        }
        Ok(())
    }
}

type Plot<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

fn draw_line(chart: &mut Plot<'_, '_>, line: &Line) -> Result<(), DrawError> {
    let style = stroke(line.look);
    let points = line.points.iter().copied();
    if line.look.is_dashed {
        chart.draw_series(DashedLineSeries::new(points, DASH.0, DASH.1, style))?;
    } else {
        chart.draw_series(LineSeries::new(points, style))?;
    }
    Ok(())
}

/// Returns the points with a mark. They differ between lines, so that marks of equal lines do not
/// hide each other.
fn marked(line: &Line, at: usize) -> impl Iterator<Item = (f64, f64)> {
    let step = (line.points.len() / MARKS).max(1);
    line.points
        .iter()
        .copied()
        .skip(step * (at % 4) / 4)
        .step_by(step)
}

fn stroke(look: Look) -> ShapeStyle {
    look.colour.stroke_width(if look.is_dashed { 3 } else { 4 })
}

/// Returns the positions of the names: x and row.
fn place_keys(lines: &[Line]) -> Vec<(i32, i32)> {
    let right = i32::try_from(WIDTH).unwrap_or(i32::MAX) - 20;
    let (mut x, mut row) = (20, 0);
    let place = |line: &Line| {
        let wide = 90 + text::width(&line.name, LABEL) + 30;
        if x > 20 && x + wide > right {
            (x, row) = (20, row + 1);
        }
        let at = (x, row);
        x += wide;
        at
    };
    lines.iter().map(place).collect()
}

/// Draws a piece of the line, then its name.
fn draw_key(area: &Area<'_>, line: &Line, (x, y): (i32, i32)) -> Drawn {
    let pieces: &[(i32, i32)] = if line.look.is_dashed {
        &[(0, 16), (26, 42), (52, 68)]
    } else {
        &[(0, 70)]
    };
    for (from, to) in pieces {
        let points = vec![(x + from, y), (x + to, y)];
        area.draw(&PathElement::new(points, stroke(line.look)))?;
    }
    draw_mark(area, line.look, (x + 35, y))?;
    text::write(area, &line.name, (x + 84, y), Stand::RightOf)
}

/// Draws the mark of a look.
pub(crate) fn draw_mark(area: &Area<'_>, look: Look, at: (i32, i32)) -> Drawn {
    let (filled, lines) = (look.colour.filled(), look.colour.stroke_width(4));
    match look.mark {
        Mark::None => Ok(()),
        Mark::Dot => area.draw(&Circle::new(at, 8, filled)),
        Mark::Triangle => area.draw(&TriangleMarker::new(at, 11, filled)),
        Mark::Cross => area.draw(&Cross::new(at, 8, lines)),
    }
}
