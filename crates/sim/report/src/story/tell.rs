//! The text. Every figure in it comes from [`Facts`] or from runs; none is typed.

mod tries;

use std::fmt::Write as _;

use crate::chart::Chart;
use crate::chart::number::percent;
use crate::chart::story::{Story, wrapped};
use anteroom_room::rules::AllocationKind;
use tries::{case, push_counters, push_curve, push_leases, push_overshoot};

use super::article::{Facts, LIMITS, NODES, SAN_JOSE, facts};
use super::crowd::admitted_before_the_first_waits;
use super::curves;
use super::rehearsals;
use super::{MARK, NAME};

/// Computes the story.
pub(super) fn tell() -> Story {
    let mut charts = curves::charts();
    let mut text = String::new();
    push_opening(&mut text);
    push_example(&mut text, &charts);
    let rehearsals = rehearsals::rehearse();
    rehearsals.push(&mut text);
    push_choice(&mut text);
    charts.extend(rehearsals.charts);
    let file = |chart: Chart| (chart.file_name, chart.svg);
    Story {
        name: NAME,
        mark: MARK,
        markdown: wrapped(&text),
        charts: charts.into_iter().map(file).collect(),
    }
}

/// The article's worked example alone, which takes no runs.
#[cfg(test)]
pub(super) fn worked_example() -> String {
    let mut text = String::new();
    push_example(&mut text, &curves::charts());
    text
}

fn push_example(text: &mut String, charts: &[Chart]) {
    let facts = facts();
    push_question(text);
    push_slots(text, &facts);
    push_rounding(text, &facts);
    push_even(text, &facts);
    push_uneven(text, &facts, charts);
    push_curve(text, &facts, charts);
    push_overshoot(text, &facts);
    push_counters(text, &facts);
    push_leases(text, &facts);
}

/// A line of Markdown that shows a chart, with its description for those who cannot see it.
pub(super) fn push_chart(text: &mut String, charts: &[Chart], slug: &str) {
    let chart = charts
        .iter()
        .find(|chart| chart.file_name == format!("{slug}.svg"));
    let chart = chart.expect("the text shows charts that are drawn");
    push(
        text,
        format_args!(
            "![{}. {}](allocations/{})\n\n",
            chart.title, chart.description, chart.file_name
        ),
    );
}

pub(super) fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what)
        .expect("writing to a string cannot fail");
}

fn push_opening(text: &mut String) {
    text.push_str(MARK);
    text.push_str(
        " Change crates/sim/report/src/story and run it again. -->\n\
         \n\
         # Four ways to share a limit\n\
         \n\
         A room has two limits: how many visitors may be inside at once, and how many may come in \
         within a minute. One process can\n\
         keep them by counting. A site that is served by many processes in many places cannot: \
         each of them has to decide at once,\n\
         and none of them sees what the others do.\n\
         \n\
         Anteroom knows four ways to decide, called allocations. Three of them are those that \
         Cloudflare described in \"How Waiting\n\
         Room makes queueing decisions on Cloudflare's highly distributed network\" (George \
         Thomas, 20 September 2023), called *the article*\n\
         below. The fourth, `leases`, is ours and the default. This page goes through the \
         article's argument step by step, says what\n\
         is left to be wished for, and shows what leases add.\n\
         \n\
         **All numbers here are computed by the code that runs in the gateway**, each time this \
         page is written. A test fails when\n\
         the page and the code disagree, and when a number of the article does not come out.\n\
         \n\
         In short:\n\
         \n\
         | allocation | how slots are shared | what goes wrong |\n\
         | --- | --- | --- |\n\
         | `even` | every node gets an equal part | people wait although there is room, when \
         traffic is uneven |\n\
         | `curve` | every node gets more than that while the room is far from full | a spike \
         from low traffic goes over the limit |\n\
         | `counters` | shared counters give out numbers | every newcomer waits for a round trip; \
         freed seats stay empty until the next minute |\n\
         | `leases` | slots are lent to nodes ahead of demand, and come back | the protocol is \
         harder to get right, which is what the simulator is for |\n\
         \n\
         Words: a *node* is one process (the article's worker), a *data center* the nodes that \
         share a fast store, and a *slot* the\n\
         right to let one more visitor in.\n\
         \n",
    );
}

fn push_question(text: &mut String) {
    text.push_str(
        "## What can go wrong\n\
         \n\
         There are two ways to be wrong.\n\
         \n\
         - **Too late:** more visitors are inside than the site can carry. It slows down or falls \
         over, for everybody.\n\
         - **Too early:** people wait although there is room. Some of them leave. The article \
         tells that this mostly lasted for one\n  \
         refresh of the waiting page, 20 seconds; but for a shop those are lost orders.\n\
         \n\
         And there is a third price: **asking**. A node that asks a central place before each \
         decision is right, and slow for\n\
         everybody who is far away from it.\n\
         \n",
    );
}

fn push_slots(text: &mut String, facts: &Facts) {
    let [san_jose, london, delhi, anywhere] = facts.shares;
    let budget = &facts.budget;
    let shares = &budget.shares;
    let part = |at: usize| shares.get(at).map_or(0, |(_, slots)| *slots);
    let [nodes, nodes_in_san_jose, nodes_in_delhi] = NODES;
    push(
        text,
        format_args!(
            "## The slots of a minute\n\
             \n\
             The article's example: both limits are {seats}. On 11 September 2023 at 11:45:54 UTC \
             a node in San Jose knows this:\n\
             \n\
             ```json\n\
             {{\n  \
               \"activeUsers\": 50,\n  \
               \"globalWorkersActive\": {nodes},\n  \
               \"dataCenterWorkersActive\": {nodes_in_san_jose},\n  \
               \"trafficHistory\": {{\n    \
                 \"2023-09-11T11:44:00Z\": {{ \"San Jose\": \"20/{rate}\", \"London\": \
                 \"30/{rate}\", \"Anywhere\": \"150/{rate}\" }}\n  \
               }}\n\
             }}\n\
             ```\n\
             \n\
             50 visitors are inside, so {seats} - 50 = **{slots} slots** are free. The room is \
             used to 50/{seats} = {utilization}, that is {percent}.\n\
             There are {nodes} nodes in the world, {nodes_in_san_jose} of them in San Jose and \
             {nodes_in_delhi} in Delhi.\n\
             \n\
             Traffic often comes from where it came from a minute ago. So slots are set aside for \
             data centers by what they admitted in the\n\
             minute before, over the limit; the rest is for *Anywhere*:\n\
             \n\
             | | admitted in the minute before | share | slots of {slots} |\n\
             | --- | ---: | ---: | ---: |\n\
             | San Jose | 20 of {rate} | {san_jose} | {of_san_jose} |\n\
             | London | 30 of {rate} | {london} | {of_london} |\n\
             | Delhi | 0 of {rate} | {delhi} | 0 |\n\
             | Anywhere | the other 150 | {anywhere} | {of_anywhere} |\n\
             \n",
            seats = LIMITS.total_active_users,
            rate = LIMITS.new_users_per_minute,
            slots = budget.slots,
            utilization = facts.utilization,
            percent = percent(facts.utilization),
            of_san_jose = budget.share_of(SAN_JOSE),
            of_london = part(1),
            of_anywhere = budget.anywhere,
        ),
    );
}

fn push_rounding(text: &mut String, facts: &Facts) {
    let [san_jose, london, anywhere] = facts.half_up;
    let budget = &facts.budget;
    let ours: Vec<String> = budget
        .shares
        .iter()
        .map(|(_, slots)| *slots)
        .chain([budget.anywhere])
        .map(|slots| slots.to_string())
        .collect();
    push(
        text,
        format_args!(
            "A note on rounding. 0.15 x 150 is 22.5, and 0.75 x 150 is 112.5. The article rounds \
             each part half up, which gives {san_jose} + {london} + {anywhere} =\n\
             **{sum}** slots where there are {slots}. Anteroom rounds so that the sum is exact: \
             {ours} = **{slots}**. Every number that the\n\
             article states comes out all the same, because a tie goes to Anywhere.\n\
             \n",
            sum = facts.half_up.iter().sum::<u32>(),
            slots = budget.slots,
            ours = ours.join(" + "),
        ),
    );
}

fn push_even(text: &mut String, facts: &Facts) {
    let [here, anywhere] = facts.even_parts;
    let [san_jose, delhi] = facts.even_totals;
    push(
        text,
        format_args!(
            "## First try: the same for every node (`even`)\n\
             \n\
             A node counts what it lets in, and asks nobody. It may use an equal part of the \
             slots of its data center, and an equal part of\n\
             the Anywhere slots:\n\
             \n\
             - a node in San Jose: {of_san_jose} / {nodes_here} = {here} slots of San Jose, and \
             {of_anywhere} / {nodes} = {anywhere} of Anywhere, together **{san_jose}**;\n\
             - a node in Delhi, where nothing is set aside: **{delhi}**.\n\
             \n\
             Parts are rounded down, so that together they are never more than there is. Nothing \
             is added to the time of a request.\n\
             And old news does little harm: a node that does not yet know of a spike elsewhere \
             still has only its piece of the cake.\n\
             \n",
            of_san_jose = facts.budget.share_of(SAN_JOSE),
            nodes_here = NODES[1],
            of_anywhere = facts.budget.anywhere,
            nodes = NODES[0],
        ),
    );
}

fn push_uneven(text: &mut String, facts: &Facts, charts: &[Chart]) {
    let even = AllocationKind::Even;
    let case = case(facts, even, [7, 1]);
    let at = |percent| admitted_before_the_first_waits(even, 100, percent);
    push(
        text,
        format_args!(
            "The flaw: visitors do not come evenly. Take 10 slots and two nodes, 5 slots each. 7 \
             visitors come to the first node and 1\n\
             to the second one. {first} and {second} get in, and **{queued} have to wait although \
             {left} slots are free**.\n\
             \n\
             How early does queueing begin? Take 100 slots and two nodes, and let part of the \
             visitors come to the busier one. If it is 50 %,\n\
             the first visitor waits after {at_50}. If it is 64 %, that happens after {at_64}; if \
             it is 70 %, after {at_70}. Nobody would call\n\
             such traffic strange, and yet queueing begins 20 to 30 % too early, which is what \
             the article reports from its network.\n\
             \n",
            first = case.admitted[0],
            second = case.admitted[1],
            queued = case.queued(),
            left = 10 - case.admitted_total(),
            at_50 = at(50),
            at_64 = at(64),
            at_70 = at(70),
        ),
    );
    push_chart(text, charts, "when-queueing-begins");
    text.push_str(
        "Read the chart from the dashed line: below it somebody waits for nothing, above it the \
         limit is broken. We come to the other lines\n\
         now.\n\
         \n",
    );
}

fn push_choice(text: &mut String) {
    text.push_str(
        "## Which one to choose\n\
         \n\
         `leases`, unless there is a reason. The others are in the gateway because the way from \
         one to the next is the best explanation of the last, and\n\
         because each has its place: `even` where nothing may depend on a store and a limit is a \
         wish; `curve` where, in addition, nobody shall wait while\n\
         the room is far from full and a short overshoot is harmless; `counters` where a round \
         trip is cheap, as in one data center. All four run in the gateway and in the\n\
         simulator from the same code, so that you can rehearse your own traffic with each of \
         them: `anteroom simulate --list` shows where to start.\n",
    );
}
