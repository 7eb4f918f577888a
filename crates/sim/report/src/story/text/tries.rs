//! Sections of the text after `even`: the curve, the counters, and leases.

use crate::chart::Chart;
use anteroom_config::words;
use anteroom_room::rules::AllocationKind;

use crate::story::arrivals::{TwoNodes, admitted_before_the_first_waits};
use crate::story::article::Facts;
use crate::story::markdown::{push, push_chart};
use crate::story::room::{NODES, SAN_JOSE};

pub(super) fn push_curve(text: &mut String, facts: &Facts, charts: &[Chart]) {
    let case = case(facts, AllocationKind::Curve, [7, 1]);
    let [eight, five, ten] = facts.of_ten;
    push(
        text,
        format_args!(
            "## Second try: more while there is room (`curve`)\n\
             \n\
             Far from the limit there is no need to be strict. So slots are divided by fewer nodes \
             than there are:\n\
             \n\
             ```text\n\
             worker multiplier = utilization ^ curve factor\n\
             adapted nodes     = nodes x worker multiplier, at least 1\n\
             slots for a node  = slots / adapted nodes, rounded down\n\
             ```\n\
             \n\
             The exponent sets how generous this is. With 1 the multiplier is the utilization \
             itself (y = x). With 2 it stays small for longer (y = x^2). At 100 % it is 1 in any \
             case, and each node is back at its equal part.\n\
             \n"
        ),
    );
    push_chart(text, charts, "powers");
    push(
        text,
        format_args!(
            "In the example with exponent 1, {nodes} nodes x {utilization} = {adapted} adapted \
             nodes. A node gets {anywhere} / {adapted} = **{part}** Anywhere slots, where `even` \
             gives {even}.\n\
             \n\
             For two nodes and ten slots the article draws a curve that gives {eight} slots to \
             each node at a utilization of 0.1. It does not state the exponent, but ln(0.625) / \
             ln(0.1) = {exponent:.5} gives that. With exponent 1 a node would get all {ten}. (10 / \
             0.2 would be more than there are, so adapted nodes are never less than 1.) At a \
             utilization of 1.0 it gets {five}.\n\
             \n",
            nodes = NODES[0],
            utilization = facts.utilization,
            adapted = facts.adapted_nodes,
            anywhere = facts.budget.anywhere,
            part = facts.curve_part,
            even = facts.even_parts[1],
            exponent = facts.exponent,
        ),
    );
    push_chart(text, charts, "slots-per-node");
    push(
        text,
        format_args!(
            "Now, of 7 visitors at one node and 1 at the other, the nodes admit {first} and \
             {second}, and {queued} wait. The flaw of `even` is gone, as long as the room is far \
             from full.\n\
             \n",
            first = case.admitted[0],
            second = case.admitted[1],
            queued = case.queued(),
        ),
    );
}

pub(super) fn push_overshoot(text: &mut String, facts: &Facts) {
    let case = case(facts, AllocationKind::Curve, [8, 7]);
    push(
        text,
        format_args!(
            "The price: the sum of the parts exceeds the slots. Let 8 visitors come to one node \
             and 7 to the other, at 10 %. Each node has 8 slots. They admit {first} and {second}, \
             so **{total} visitors enter on 10 slots**. With more nodes it is worse. A spike from \
             a quiet moment does exactly that. Visitors come everywhere at once, while each node \
             still believes that the room is empty.\n\
             \n\
             The first chart shows this curve at 10 %, with 80 of the 100 slots for each node. If \
             traffic is even, {at_50} visitors enter before the first one waits. If all of it \
             comes to one node, {at_100} enter, and 20 slots stay unused. In between it is right \
             by chance.\n\
             \n",
            at_50 = admitted_before_the_first_waits(AllocationKind::Curve, 100, 50),
            at_100 = admitted_before_the_first_waits(AllocationKind::Curve, 100, 100),
            first = case.admitted[0],
            second = case.admitted[1],
            total = case.admitted_total(),
        ),
    );
}

pub(super) fn push_counters(text: &mut String, facts: &Facts) {
    let counters = AllocationKind::Counters;
    let (calm, spike) = (case(facts, counters, [7, 1]), case(facts, counters, [8, 7]));
    let word = |is_in: bool| if is_in { "enters" } else { "waits" };
    let [nine, ten] = facts.numbers;
    let [of_128, of_129] = facts.at_one_node;
    push(
        text,
        format_args!(
            "## Third try: shared counters (`counters`)\n\
             \n\
             The nodes of a data center share a counter, which works like a ticket dispenser. Each \
             request gets the next number, and no two get the same. There is one counter for each \
             data center and minute, and one for Anywhere. With 10 slots, the visitor with the \
             number 9 {nine}, and the one with the number 10 {ten}, because numbers start at 0.\n\
             \n\
             - 7 and 1 visitors at two nodes with ten slots: {calm} admitted, {calm_queued} wait. \
             No visitor waits while a slot is free.\n\
             - 8 and 7 visitors: {spike} admitted, {spike_queued} wait. The limit holds.\n\
             - In the example a single node in San Jose can use the {here} slots of San Jose and \
             then all {anywhere} of Anywhere. Of 128 visitors {of_128} enter. Of 129 still \
             {of_128_again} enter, and {queued} waits.\n\
             \n\
             The number of nodes no longer matters. The costs:\n\
             \n\
             - **Every new visitor waits for a round trip** before admission. The article states \
             less than 10 ms to the data center's counter. To the one for Anywhere it is 60 to \
             70 ms or more. Active visitors do not wait: their ticket is proof enough.\n\
             - **The slots of a minute are fixed when it begins.** A seat that becomes free a \
             second later stays empty until the next minute.\n\
             - **It is as right as its statistics are fresh.** The counter is exact, but the \
             number of slots comes from statistics that are some seconds old.\n\
             \n",
            nine = word(nine),
            ten = word(ten),
            calm = calm.admitted_total(),
            calm_queued = calm.queued(),
            spike = spike.admitted_total(),
            spike_queued = spike.queued(),
            here = facts.budget.share_of(SAN_JOSE),
            anywhere = facts.budget.anywhere,
            of_128_again = of_129,
            queued = 129 - of_129,
        ),
    );
}

pub(super) fn push_leases(text: &mut String, facts: &Facts) {
    let case = case(facts, AllocationKind::Leases, [8, 7]);
    let first_waits =
        |percent| admitted_before_the_first_waits(AllocationKind::Leases, 100, percent);
    push(
        text,
        format_args!(
            "## What leases add (`leases`)\n\
             \n\
             All three tries share one idea: *guess* how many slots there are, then give out parts \
             of the guess. `leases` keeps accounts instead. A ledger leases slots to data centers, \
             and their ledgers lease them to nodes, ahead of demand. The sum of all leases never \
             exceeds the limit.\n\
             \n\
             - **A node that has slots decides alone**, in memory, like `even`. Most new visitors \
             wait for nothing.\n\
             - **A node that has none sends its data center a request**, and waits for at most 250 \
             ms before it queues a visitor. Nodes return slots that they do not use within \
             moments. So uneven traffic does not matter, as with `counters`.\n\
             - **A seat that becomes free is leased again at once**, not in the next minute.\n\
             - **A node that is lost costs capacity, never safety.** Its lease expires. Its slots \
             count as used until every visitor that it could have admitted must be gone.\n\
             \n\
             8 and 7 visitors at two nodes with ten slots: **{total} admitted, {queued} wait**. In \
             the first chart the line of `leases` is where it should be. With 100 slots and even \
             traffic the first visitor waits after {at_50} admissions. At 70 % that happens after \
             {at_70}, and at 90 % after {at_90}. An unused slot of another node is back within \
             half a second, but no visitor waits that long for a response. So one or two of the \
             last slots can be on their way.\n\
             \n",
            total = case.admitted_total(),
            queued = case.queued(),
            at_50 = first_waits(50),
            at_70 = first_waits(70),
            at_90 = first_waits(90),
        ),
    );
    text.push_str("| 10 slots, two nodes | come | enter | wait |\n| --- | ---: | ---: | ---: |\n");
    for case in &facts.two_nodes {
        push(
            text,
            format_args!(
                "| `{}`{} | {} + {} | {} | {} |\n",
                words::allocation(case.kind),
                if case.kind == AllocationKind::Curve {
                    " at 10 %"
                } else {
                    ""
                },
                case.arrivals[0],
                case.arrivals[1],
                case.admitted_total(),
                case.queued(),
            ),
        );
    }
    text.push('\n');
}

/// Returns one of the computed cases.
pub(super) fn case(facts: &Facts, kind: AllocationKind, arrivals: [u32; 2]) -> TwoNodes {
    let known = facts.two_nodes.iter();
    *known
        .clone()
        .find(|case| case.kind == kind && case.arrivals == arrivals)
        .expect("the text has only cases that were computed")
}
