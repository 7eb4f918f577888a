//! Charts of the article's argument: the curve, its slots, and the start of queueing.

use crate::chart::axis::Axis;
use crate::chart::line::{Line, LineChart};
use crate::chart::palette::{LIMIT, Look, Mark, PURPLE};
use crate::chart::{Caption, Chart};
use anteroom_config::words;
use anteroom_room::allocation::{curve, even};
use anteroom_room::rules::{AllocationKind, Rules};
use anteroom_room::statistics::Utilization;

use super::arrivals::admitted_before_the_first_waits;
use super::room::{exponent_millionths, rules};
use crate::look::look;

const ONE: u32 = 1_000_000;
const TWO: u32 = 2_000_000;

/// Returns the charts, in the order of the text.
pub(super) fn charts() -> Vec<Chart> {
    vec![powers(), slots_per_node(), when_queueing_begins()]
}

/// Draws `y = x` and `y = x^2`: the multiplier of the number of nodes.
fn powers() -> Chart {
    let line = |name: &str, exponent: f64, look: Look| Line {
        name: name.to_owned(),
        look,
        points: hundredths().map(|x| (x, libm::pow(x, exponent))).collect(),
    };
    LineChart {
        caption: caption(
            "powers",
            "Multiplier of the nodes, against utilization",
            "Both lines start at 0 and end at 1. Between the ends the square lies below the \
             straight line. The higher the exponent, the longer nodes keep more than their equal \
             part.",
        ),
        across: Axis::share(),
        across_is: "utilization".to_owned(),
        up: Axis::share(),
        up_is: "factor".to_owned(),
        lines: vec![line("y = x", 1.0, straight()), line("y = x^2", 2.0, bent())],
    }
    .draw()
}

/// Draws ten slots and two nodes, as in the article.
fn slots_per_node() -> Chart {
    let line = |name: String, look: Look, part: &dyn Fn(Utilization) -> u32| Line {
        name,
        look,
        points: (0..=100u32)
            .map(|percent| {
                let utilization = Utilization {
                    used: percent,
                    limit: 100,
                };
                (f64::from(percent) / 100.0, f64::from(part(utilization)))
            })
            .collect(),
    };
    let curve = |millionths| {
        let rules: Rules = rules(millionths);
        move |utilization| curve::per_node(10, 2, utilization, &rules)
    };
    let equal = |utilization| even::per_node(10, 2, utilization, &rules(ONE));
    let fitted = exponent_millionths();
    LineChart {
        caption: caption(
            "slots-per-node",
            "Slots for each of two nodes, of ten",
            "With even it is always 5. With curve each node may give out up to all 10 while \
             utilization is low, and 5 at full utilization.",
        ),
        across: Axis::share(),
        across_is: "utilization".to_owned(),
        up: Axis::count(10.0),
        up_is: "slots for each node".to_owned(),
        lines: vec![
            line("even".to_owned(), look(AllocationKind::Even), &equal),
            line(
                format!("curve, exponent {:.3}", f64::from(fitted) / 1e6),
                look(AllocationKind::Counters),
                &curve(fitted),
            ),
            line("curve, 1".to_owned(), straight(), &curve(ONE)),
            line("curve, 2".to_owned(), bent(), &curve(TWO)),
        ],
    }
    .draw()
}

/// Draws how many of 100 slots were used when the first visitor waited, by how uneven traffic is.
fn when_queueing_begins() -> Chart {
    let line = |kind: AllocationKind| Line {
        name: words::allocation(kind).to_owned(),
        look: look(kind),
        points: (50..=100u32)
            .step_by(2)
            .map(|percent| {
                let admitted = admitted_before_the_first_waits(kind, 100, percent);
                (f64::from(percent), f64::from(admitted))
            })
            .collect(),
    };
    let kinds = [
        AllocationKind::Even,
        AllocationKind::Curve,
        AllocationKind::Counters,
        AllocationKind::Leases,
    ];
    let mut lines: Vec<Line> = kinds.map(line).to_vec();
    lines.push(Line {
        name: "slots".to_owned(),
        look: LIMIT,
        points: vec![(50.0, 100.0), (100.0, 100.0)],
    });
    let highest = lines.iter().flat_map(|line| &line.points);
    let highest = highest.map(|(_, admitted)| *admitted).fold(0.0, f64::max);
    LineChart {
        caption: caption(
            "when-queueing-begins",
            "Admissions before the first visitor waits",
            "There are 100 slots, so 100 is right. Below it a visitor waits although a slot is \
             free. Above it more visitors are admitted than there is room for.",
        ),
        across: Axis::between(50, 100, 10, " %"),
        across_is: "share of visitors who come to the busier of two nodes".to_owned(),
        up: Axis::count(highest),
        up_is: "visitors admitted".to_owned(),
        lines,
    }
    .draw()
}

fn hundredths() -> impl Iterator<Item = f64> {
    (0..=100u32).map(|percent| f64::from(percent) / 100.0)
}

const fn straight() -> Look {
    look(AllocationKind::Leases)
}

const fn bent() -> Look {
    Look {
        colour: PURPLE,
        mark: Mark::Cross,
        is_dashed: false,
    }
}

/// Creates a caption with a file name that no chart of a report has.
pub(super) fn caption(slug: &str, title: &str, description: &str) -> Caption {
    Caption {
        file_name: format!("{slug}.svg"),
        title: title.to_owned(),
        description: description.to_owned(),
    }
}
