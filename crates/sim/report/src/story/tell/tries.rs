//! The parts of the text after `even`: the curve, the counters, and what leases add.

use crate::chart::Chart;
use anteroom_config::words;
use anteroom_room::rules::AllocationKind;

use super::{push, push_chart};
use crate::story::article::{Facts, NODES, SAN_JOSE};
use crate::story::crowd::{TwoNodes, admitted_before_the_first_waits};

pub(super) fn push_curve(text: &mut String, facts: &Facts, charts: &[Chart]) {
    let case = case(facts, AllocationKind::Curve, [7, 1]);
    let [eight, five, ten] = facts.of_ten;
    push(
        text,
        format_args!(
            "## Second try: more while there is room (`curve`)\n\
             \n\
             Far from the limit there is no need to be strict. So slots are divided by fewer \
             nodes than there are:\n\
             \n\
             ```text\n\
             worker multiplier = utilization ^ curve factor\n\
             adapted nodes     = nodes x worker multiplier, at least 1\n\
             slots for a node  = slots / adapted nodes, rounded down\n\
             ```\n\
             \n\
             The exponent says how generous this is. With 1 the multiplier is the utilization \
             itself (y = x); with 2 it stays small for longer\n\
             (y = x^2); at 100 % it is 1 in any case, and each node is back at its equal part.\n\
             \n"
        ),
    );
    push_chart(text, charts, "powers");
    push(
        text,
        format_args!(
            "In the example with exponent 1: {nodes} nodes x {utilization} = {adapted} adapted \
             nodes, and {anywhere} / {adapted} = **{part}** Anywhere slots for a\n\
             node, where `even` gives {even}.\n\
             \n\
             For two nodes and ten slots the article draws a curve that gives {eight} slots to \
             each node at a utilization of 0.1. It does not\n\
             state the exponent; ln(0.625) / ln(0.1) = {exponent:.5} is the one that does it. \
             With exponent 1 a node would get all {ten} (10 / 0.2 would be more\n\
             than there are, so adapted nodes are never less than 1), and at a utilization of 1.0 \
             it gets {five}.\n\
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
            "Now, of 7 visitors at one node and 1 at the other, {first} and {second} get in, and \
             {queued} wait. The flaw of `even` is gone, as long as the room is\n\
             far from full.\n\
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
            "The price: the parts sum up to more than there is. Let 8 visitors come to one node \
             and 7 to the other, at 10 %: each node has 8 slots,\n\
             {first} and {second} get in, and **{total} visitors are admitted on 10 slots**. With \
             more nodes it is worse. That is what a spike from a quiet\n\
             moment does: everybody comes at once, everywhere, while each node still believes \
             that the room is empty.\n\
             \n\
             The first chart shows this curve at 10 %, with 80 of the 100 slots for each node. If \
             traffic is even, {at_50} visitors get in before the first one\n\
             waits; if all of it comes to one node, {at_100}, and then 20 slots lie idle. It is \
             right in between, by chance.\n\
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
    let word = |is_in: bool| if is_in { "goes in" } else { "waits" };
    let [nine, ten] = facts.numbers;
    let [of_128, of_129] = facts.at_one_node;
    push(
        text,
        format_args!(
            "## Third try: ask a counter (`counters`)\n\
             \n\
             The nodes of a data center share a counter, which works like a ticket dispenser: \
             anyone who asks gets the next number, and nobody gets\n\
             the same one. There is one counter for each data center and minute, and one for \
             Anywhere. With 10 slots the visitor with the number 9 {nine}, and\n\
             the one with the number 10 {ten}, because numbers start at 0.\n\
             \n\
             - 7 and 1 visitors at two nodes with ten slots: {calm} admitted, {calm_queued} wait. \
             Nobody waits for nothing.\n\
             - 8 and 7 visitors: {spike} admitted, {spike_queued} wait. Nobody comes in who \
             should not.\n\
             - In the example a single node in San Jose can use the {here} slots of San Jose and \
             then all {anywhere} of Anywhere: of 128 visitors {of_128} get in, of 129\n  \
             still {of_128_again}, and {queued} waits.\n\
             \n\
             The number of nodes does not matter any more. What it costs:\n\
             \n\
             - **Every newcomer waits for a round trip** before it is let in: less than 10 ms to \
             the counter of the data center, and 60 to 70 ms or more to\n  \
             the one for Anywhere, by the article's account. Visitors inside do not: their ticket \
             is proof enough.\n\
             - **The slots of a minute are fixed when it begins.** A seat that becomes free a \
             second later stays empty until the next minute.\n\
             - **It is as right as its snapshot is fresh.** The counter is exact, but the number \
             of slots it is compared with comes from statistics\n  \
             that are some seconds old.\n\
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
             All three tries share one idea: *guess* how many slots there are, then hand out \
             parts of the guess. `leases` keeps books instead. A ledger\n\
             lends slots to data centers, and they lend them on to their nodes, ahead of demand. \
             What is lent never sums up to more than the limit.\n\
             \n\
             - **A node that has slots decides alone**, in memory, like `even`. Most newcomers \
             wait for nothing.\n\
             - **A node that has none asks** its data center, for at most 250 ms, before it lets \
             anybody wait. Nodes that hold slots without using them give\n  \
             them back within moments. So uneven traffic does not matter, like with `counters`.\n\
             - **A seat that becomes free is lent again at once**, not in the next minute.\n\
             - **A node that falls silent costs room, never safety.** Its lease has an end. Until \
             every visitor that it could have admitted must be\n  \
             gone, its slots count as used.\n\
             \n\
             8 and 7 visitors at two nodes with ten slots: **{total} admitted, {queued} wait**. \
             In the first chart the line of `leases` lies where it should: with 100 slots the\n\
             first visitor waits after {at_50} admissions if traffic is even, after {at_70} at 70 \
             %, and after {at_90} at 90 %. A slot that lies idle at another node is back\n\
             within half a second, but nobody is kept that long without an answer: so one or two \
             of the last slots can be on their way.\n\
             \n",
            total = case.admitted_total(),
            queued = case.queued(),
            at_50 = first_waits(50),
            at_70 = first_waits(70),
            at_90 = first_waits(90),
        ),
    );
    text.push_str("| 10 slots, two nodes | come | get in | wait |\n| --- | ---: | ---: | ---: |\n");
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

/// One of the cases that were computed.
pub(super) fn case(facts: &Facts, kind: AllocationKind, arrivals: [u32; 2]) -> TwoNodes {
    let known = facts.two_nodes.iter();
    *known
        .clone()
        .find(|case| case.kind == kind && case.arrivals == arrivals)
        .expect("the text speaks of cases that were computed")
}
