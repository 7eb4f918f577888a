//! Text of the page. All its numbers come from [`Facts`] or from runs.

mod tries;

use crate::chart::Chart;
use crate::chart::number::percent;
use crate::chart::story::{Page, Story, wrapped};
use anteroom_room::rules::AllocationKind;
use tries::{case, push_counters, push_curve, push_leases, push_overshoot};

use super::arrivals::admitted_before_the_first_waits;
use super::article::{Facts, facts};
use super::curves;
use super::markdown::{push, push_chart};
use super::rehearsals;
use super::room::{LIMITS, NODES, SAN_JOSE};
use super::{MARK, NAME, SIMULATED};

/// Computes the story.
pub(super) fn tell() -> Story {
    let mut charts = curves::charts();
    let mut example = String::new();
    push_opening(&mut example);
    push_example(&mut example, &charts);
    let mut simulated = String::new();
    push_second_opening(&mut simulated);
    let rehearsals = rehearsals::rehearse();
    rehearsals.push(&mut simulated);
    push_choice(&mut simulated);
    charts.extend(rehearsals.charts);
    let file = |chart: Chart| (chart.file_name, chart.svg);
    let page = |name, text: &str| Page {
        name,
        markdown: wrapped(text),
    };
    Story {
        name: NAME,
        mark: MARK,
        pages: vec![page(NAME, &example), page(SIMULATED, &simulated)],
        charts: charts.into_iter().map(file).collect(),
    }
}

/// Returns the article's worked example alone, which takes no runs.
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

fn push_opening(text: &mut String) {
    text.push_str(MARK);
    text.push_str(
        " Change crates/sim/report/src/story and run it again. -->\n\
         \n\
         # Four ways to share a limit\n\
         \n\
         A room has two limits: how many visitors may be active at once, and how many may enter \
         within a minute. One process keeps them by counting. A site with many processes in many \
         places cannot. Each process has to decide at once, and none of them sees what the others \
         do.\n\
         \n\
         Anteroom has four ways to decide, called allocations. Cloudflare described three of them \
         in \"How Waiting Room makes queueing decisions on Cloudflare's highly distributed \
         network\" (George Thomas, 20 September 2023). This page calls it *the article*. The \
         fourth, `leases`, is ours and the default. This page follows the article's argument step \
         by step, says what it leaves open, and shows what leases add. The [second \
         page](allocations-simulated.md) simulates visitors, and says which allocation to choose.\n\
         \n\
         **The code of the gateway computes all numbers here**, each time the program writes this \
         page. A test fails when the page and the code disagree, and when a number of the article \
         does not come out.\n\
         \n\
         In short:\n\
         \n\
         | allocation | how slots are shared | what goes wrong |\n\
         | --- | --- | --- |\n\
         | `even` | every node gets an equal part | visitors wait although there is room, when \
         traffic is uneven |\n\
         | `curve` | every node gets more than that while the room is far from full | a spike from \
         low traffic exceeds the limit |\n\
         | `counters` | shared counters give out numbers | every new visitor waits for a round \
         trip; freed seats stay empty until the next minute |\n\
         | `leases` | nodes lease slots ahead of demand, and return them | the protocol is harder \
         to get right; the simulator tests it |\n\
         \n\
         Terms: a *node* is one process (the article's worker). A *data center* is the nodes that \
         share a fast store. A *slot* is the right to admit one more visitor.\n\
         \n",
    );
}

fn push_second_opening(text: &mut String) {
    text.push_str(MARK);
    text.push_str(
        " Change crates/sim/report/src/story and run it again. -->\n\
         \n\
         # Four ways to share a limit, simulated\n\
         \n\
         This page continues [Four ways to share a limit](allocations.md).\n\
         \n",
    );
}

fn push_question(text: &mut String) {
    text.push_str(
        "## What can go wrong\n\
         \n\
         A decision can be wrong in two ways.\n\
         \n\
         - **Too late:** more visitors are active than the site can carry. It slows down or fails, \
         for all of them.\n\
         - **Too early:** visitors wait although there is room. Some of them leave. In the article \
         this mostly lasted for one refresh of the waiting page, 20 seconds. A shop loses orders \
         in that time.\n\
         \n\
         There is a third price: **round trips**. A node that sends a central place a request \
         before each decision is right. But it is slow for all visitors who are far away from that \
         place.\n\
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
             In the article's example both limits are {seats}. On 11 September 2023 at 11:45:54 \
             UTC a node in San Jose knows this:\n\
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
             50 visitors are active, so {seats} - 50 = **{slots} slots** are free. The utilization \
             of the room is 50/{seats} = {utilization}, that is {percent}. There are {nodes} nodes \
             in all, {nodes_in_san_jose} of them in San Jose and {nodes_in_delhi} in Delhi.\n\
             \n\
             Traffic often comes from where it came from a minute ago. So each data center gets \
             slots by its share of the admissions in the minute before, over the limit. The rest \
             is for *Anywhere*:\n\
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
             each part half up, which gives {san_jose} + {london} + {anywhere} = **{sum}** slots \
             where there are {slots}. Anteroom rounds so that the sum is exact: {ours} = \
             **{slots}**. A tie goes to Anywhere, so every number in the article still comes out.\n\
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
             A node counts its own admissions, and sends no requests. It may use an equal part of \
             the slots of its data center, and an equal part of the Anywhere slots:\n\
             \n\
             - a node in San Jose: {of_san_jose} / {nodes_here} = {here} slots of San Jose, and \
             {of_anywhere} / {nodes} = {anywhere} of Anywhere, together **{san_jose}**\n\
             - a node in Delhi, which has no slots of its own: **{delhi}**\n\
             \n\
             Parts are rounded down, so that their sum never exceeds the slots. A request takes no \
             extra time. Old statistics do little harm: a node that does not yet know of a spike \
             elsewhere still has only its own part.\n\
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
             visitors come to the first node and 1 to the second one. The nodes admit {first} and \
             {second}, and **{queued} visitors wait although {left} slots are free**.\n\
             \n\
             How early does queueing begin? Take 100 slots and two nodes, and a share of visitors \
             who come to the busier one. With 50 %, the first visitor waits after {at_50} \
             admissions. With 64 % that happens after {at_64}, and with 70 % after {at_70}. Such \
             traffic is ordinary. Yet queueing begins 20 to 30 % too early, which is what the \
             article reports from its network.\n\
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
        "Read the chart from the dashed line. Below it a visitor waits although a slot is free. \
         Above it the limit is exceeded. The next sections explain the other lines.\n\
         \n",
    );
}

fn push_choice(text: &mut String) {
    text.push_str(
        "## Which one to choose\n\
         \n\
         Use `leases`, unless you have a reason. The others are in the gateway because each of \
         them explains the next one, and because each has its use:\n\
         \n\
         - `even` where no decision may depend on a store, and the limit is a target\n\
         - `curve` where, in addition, no visitor should wait while the room is far from full, and \
         a short excess is harmless\n\
         - `counters` where a round trip is cheap, as in one data center\n\
         \n\
         The gateway and the simulator run all four from the same code, so you can simulate your \
         own traffic with each of them. `anteroom simulate --list` shows where to start.\n",
    );
}
