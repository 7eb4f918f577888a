//! Windows: their counts of the same traffic, from the coarsest to the strictest.

use crate::chart::number::grouped;
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Setting;

use super::Page;
use super::facts::{
    LIMIT, PARTS, REQUESTS, alone, an_hour_of_bursts, around_an_edge, bursts, left_of,
    mean_error_tenths, policy, random_requests, under_attack,
};
use crate::lab::charts::counts;
use crate::lab::traffic::Traffic;

const WINDOWS: [AlgorithmKind; 5] = [
    AlgorithmKind::FixedWindow,
    AlgorithmKind::SlidingWindow,
    AlgorithmKind::SubWindows,
    AlgorithmKind::SubWindowsStrict,
    AlgorithmKind::SlidingLog,
];

/// Parts of a minute for the table of diminishing returns.
const FINER: [u32; 5] = [1, 2, 4, 15, 60];

pub(super) fn push(page: &mut Page) {
    let random = random_requests();
    push_log(page);
    push_fixed(page, &random);
    push_two(page, &random);
    push_five(page, &random);
    push_strict(page, &random);
    push_returns(page);
}

fn chart(page: &mut Page, slug: &str, algorithm: AlgorithmKind, traffic: &Traffic) {
    let policy = policy(algorithm, PARTS);
    let chart = counts(slug, algorithm.name(), &policy, traffic);
    page.show(chart.expect("windows keep counts"));
}

fn push_log(page: &mut Page) {
    page.push(format_args!(
        "## Exactly: remember each request (`sliding-log`)\n\
         \n\
         The direct way is a list of times for each client. Each request drops the old times, \
         counts the rest, and adds its own. This is right and simple, and it is the truth that the \
         other algorithms are compared with. But the list grows with the limit, and each request \
         walks through it. Two nodes must not change the same list at once, so the store needs \
         transactions.\n\
         \n"
    ));
}

fn push_fixed(page: &mut Page, random: &Traffic) {
    let stats = alone(policy(AlgorithmKind::FixedWindow, PARTS), random).stats;
    page.push(format_args!(
        "## Cheaply: a counter for each minute (`fixed-window`)\n\
         \n\
         Nearly every store can add to a counter. A single counter per client would count since \
         its creation, and limits nothing in a minute. So its name contains the minute, as in \
         `client_202202240710`. That is one operation, always equally fast, and needs no \
         transaction.\n\
         \n\
         It answers another question, though. At 07:10:23 it knows the requests since 07:10:00, \
         but the limit is about those since 07:09:23. At every full minute it forgets. Of {LIMIT} \
         requests at 07:09:59 and another {LIMIT} at 07:10:00 it allows **{leaked}**, twice the \
         limit within two seconds. The log allows {logged}.\n\
         \n\
         The article draws this over random traffic. Here it is some {REQUESTS} requests a \
         minute:\n\
         \n",
        leaked = around_an_edge(AlgorithmKind::FixedWindow),
        logged = around_an_edge(AlgorithmKind::SlidingLog),
    ));
    chart(page, "fixed-window", AlgorithmKind::FixedWindow, random);
    page.push(format_args!(
        "In the first minute both lines are equal. Then the dashed line falls to zero each minute \
         and reaches the limit only in its last seconds. The true count hardly moves. If it \
         decides about these {requests} requests, it allows {wrong} that it should have rejected.\n\
         \n",
        requests = grouped(stats.requests),
        wrong = grouped(stats.wrongly_allowed),
    ));
}

fn push_two(page: &mut Page, random: &Traffic) {
    let two = policy(AlgorithmKind::SlidingWindow, PARTS);
    page.push(format_args!(
        "## A guess: two windows (`sliding-window`)\n\
         \n\
         The forgotten requests are still in the counter of the minute before. At 00:01:43 the \
         counter \"00:01\" has the last 43 seconds. The 17 seconds before them are somewhere in \
         \"00:00\". If its requests came evenly, 17/60 of them came then:\n\
         \n\
         ```text\n\
         count = current + previous x (60 - elapsed) / 60          at 00:01:43:  \"00:01\" + \
         \"00:00\" x 17/60\n\
         ```\n\
         \n\
         Of 60 requests in the minute before, {part} are counted. Under an even load that is \
         exact. If they came early in their minute it is too many. If they came late it is too \
         few.\n\
         \n",
        part = left_of(&two, 60, 30, 103),
    ));
    chart(page, "sliding-window", AlgorithmKind::SlidingWindow, random);
}

fn push_five(page: &mut Page, random: &Traffic) {
    let five = policy(AlgorithmKind::SubWindows, PARTS);
    let counters = five.counters().map_or(0, |counters| counters.count());
    page.push(format_args!(
        "The steps at each minute are gone. The count is slightly too high here and too low \
         there.\n\
         \n\
         ## A finer guess: {counters} windows of 15 seconds (`sub-windows`)\n\
         \n\
         Only the oldest counter is a guess, so smaller counters make a smaller error. Here \
         {PARTS} counters and a part of a fifth make a minute. 5 seconds into a window of 15, two \
         thirds of the oldest counter count. Of 60 requests that is {part}.\n\
         \n",
        part = left_of(&five, 60, 0, 65),
    ));
    chart(page, "sub-windows", AlgorithmKind::SubWindows, random);
}

fn push_strict(page: &mut Page, random: &Traffic) {
    page.push(format_args!(
        "## No guess: the oldest counts whole (`sub-windows-strict`)\n\
         \n\
         The article stops here: better, still not perfect. It calls the error small, and in calm \
         traffic it is. But a client can use a guess that is too low. A client that knows where \
         windows end sends requests in the last instant of one, and then all the time. The last \
         column of the table below is such a client. Finer windows do not help. The oldest one may \
         contain all {LIMIT} requests, and as soon as it fades, others pass.\n\
         \n\
         The strict algorithm counts the oldest counter *whole* until it is over. The windows that \
         it reads cover more than a minute, so the sum is never below the truth. No minute exceeds \
         the limit, with the same counters and the same single addition. The price: a client that \
         used up its limit waits up to one sub-window longer than necessary.\n\
         \n"
    ));
    chart(
        page,
        "sub-windows-strict",
        AlgorithmKind::SubWindowsStrict,
        random,
    );
    let bursts = bursts();
    let row = |algorithm: AlgorithmKind| {
        let policy = policy(algorithm, PARTS);
        let stats = [random, &bursts].map(|traffic| alone(policy, traffic).stats);
        let [random, bursts] = stats;
        let name = match policy.counters() {
            Some(_) if algorithm.has(Setting::SubWindows) => {
                format!("`{}` ({PARTS})", algorithm.name())
            }
            _ => format!("`{}`", algorithm.name()),
        };
        [
            name,
            random.wrongly_allowed.to_string(),
            random.wrongly_rejected.to_string(),
            bursts.wrongly_allowed.to_string(),
            bursts.wrongly_rejected.to_string(),
            random.highest.max(bursts.highest).to_string(),
            under_attack(policy).highest.to_string(),
        ]
    };
    page.push(format_args!(
        "Ten minutes of random traffic ({} requests) and ten of bursts ({} requests), limit \
         {LIMIT} a minute:\n\
         \n",
        grouped(random.requests.len() as u64),
        grouped(bursts.requests.len() as u64),
    ));
    page.table(
        [
            "",
            "random: wrongly allowed",
            "wrongly rejected",
            "bursts: wrongly allowed",
            "wrongly rejected",
            "highest of both",
            "highest of its adversary",
        ],
        &WINDOWS.map(row),
    );
    page.push(format_args!(
        "Ten minutes are few. In these bursts the guess with {PARTS} sub-windows allows more than \
         the one with two windows. Over an hour, below, it does not, but one with 2 sub-windows \
         still does.\n\
         \n"
    ));
}

fn push_returns(page: &mut Page) {
    let traffic = an_hour_of_bursts();
    let row = |parts: u32| {
        let guess = policy(AlgorithmKind::SubWindows, parts);
        let strict = policy(AlgorithmKind::SubWindowsStrict, parts);
        let stats = alone(guess, &traffic).stats;
        let error = mean_error_tenths(&guess, &traffic);
        let counters = guess.counters().map_or(0, |counters| counters.count());
        [
            format!("{parts} of {} s", 60 / parts),
            counters.to_string(),
            format!("{}.{}", error / 10, error % 10),
            stats.wrongly_allowed.to_string(),
            stats.wrongly_rejected.to_string(),
            under_attack(guess).highest.to_string(),
            alone(strict, &traffic).stats.wrongly_rejected.to_string(),
            under_attack(strict).highest.to_string(),
        ]
    };
    page.push(format_args!(
        "## Diminishing returns\n\
         \n\
         The article's extreme is 60 windows of one second, and each request has to read them all. \
         What does that gain? An hour of bursts ({} requests):\n\
         \n",
        grouped(traffic.requests.len() as u64),
    ));
    page.table(
        [
            "sub-windows",
            "counters read",
            "mean error",
            "guess: wrongly allowed",
            "wrongly rejected",
            "highest of its adversary",
            "strict: wrongly rejected",
            "highest of its adversary",
        ],
        &FINER.map(row),
    );
    page.push(format_args!(
        "The first row is the guess of two windows. Each step down the table reduces the error of \
         the count by less than the step before, as the article says. For wrongly allowed requests \
         the first step gains nothing here. 2 of 30 s allow more than 1 of 60 s, and only the \
         finer ones allow less. No step keeps the limit: the adversary gets {highest} of {LIMIT} \
         in every row. The strict sum has {LIMIT} in every row, and more windows only make it more \
         generous. (The error includes rounding up to whole requests.)\n\
         \n",
        highest = policy(AlgorithmKind::SubWindows, PARTS).window_cost_max(1),
    ));
}
