//! Windows: what they count of the same traffic, from the coarsest to the strictest.

use crate::chart::number::grouped;
use anteroom_limit::algorithm::Algorithm as _;
use anteroom_limit::registry::AlgorithmKind;
use anteroom_limit::settings::Setting;

use super::Page;
use super::facts::{
    CALLS, LIMIT, PARTS, alone, an_hour_of_bursts, around_an_edge, bursts, left_of,
    mean_error_tenths, policy, random_calls, under_attack,
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
    let random = random_calls();
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
        "## Exactly: remember each call (`sliding-log`)\n\
         \n\
         The straight way is a list of times for each client. Who calls has the old ones dropped, \
         the rest counted, and its own added. This is\n\
         right and simple, and it is what the other algorithms are judged by. But the list grows \
         with the limit and is walked through at each call,\n\
         and two nodes must not change the same list at once: it takes a store with transactions.\n\
         \n"
    ));
}

fn push_fixed(page: &mut Page, random: &Traffic) {
    let stats = alone(policy(AlgorithmKind::FixedWindow, PARTS), random).stats;
    page.push(format_args!(
        "## Cheaply: a counter for each minute (`fixed-window`)\n\
         \n\
         Nearly every store can add to a counter. One counter for each client alone would count \
         since it was made, which limits nothing in a minute; so its name\n\
         has the minute in it, as in `client_202202240710`. That is one operation, always as \
         quick, and needs no transaction.\n\
         \n\
         It answers another question, though. At 07:10:23 it knows of the calls since 07:10:00, \
         while the limit speaks of those since 07:09:23. At every\n\
         full minute it forgets: of {LIMIT} calls at 07:09:59 and another {LIMIT} at 07:10:00 it \
         admits **{leaked}**, twice the limit within two seconds. The log\n\
         admits {logged}.\n\
         \n\
         The article draws this over random traffic. Here it is some {CALLS} calls a minute:\n\
         \n",
        leaked = around_an_edge(AlgorithmKind::FixedWindow),
        logged = around_an_edge(AlgorithmKind::SlidingLog),
    ));
    chart(page, "fixed-window", AlgorithmKind::FixedWindow, random);
    page.push(format_args!(
        "In the first minute both are the same. Then the dashed line falls to nothing each minute \
         and is at the limit only in its last seconds, while the true\n\
         count hardly moves. If it decides about these {calls} calls, it admits {wrong} that \
         should have been refused.\n\
         \n",
        calls = grouped(stats.calls),
        wrong = grouped(stats.wrongly_admitted),
    ));
}

fn push_two(page: &mut Page, random: &Traffic) {
    let two = policy(AlgorithmKind::SlidingWindow, PARTS);
    page.push(format_args!(
        "## A guess: two windows (`sliding-window`)\n\
         \n\
         What was forgotten is still there, in the counter of the minute before. At 00:01:43 the \
         counter \"00:01\" has the last 43 seconds. The 17 seconds before\n\
         them lie somewhere in \"00:00\", and if its calls came evenly, 17/60 of them did:\n\
         \n\
         ```text\n\
         count = current + previous x (60 - elapsed) / 60          at 00:01:43:  \"00:01\" + \
         \"00:00\" x 17/60\n\
         ```\n\
         \n\
         Of 60 calls in the minute before, {part} are counted. Under an even load that is exact. \
         If they came early in their minute it is too many, if they came\n\
         late it is too few.\n\
         \n",
        part = left_of(&two, 60, 30, 103),
    ));
    chart(page, "sliding-window", AlgorithmKind::SlidingWindow, random);
}

fn push_five(page: &mut Page, random: &Traffic) {
    let five = policy(AlgorithmKind::SubWindows, PARTS);
    let counters = five.counters().map_or(0, |counters| counters.count());
    page.push(format_args!(
        "The minute marks are gone, a little too high here and too low there.\n\
         \n\
         ## A finer guess: {counters} windows of 15 seconds (`sub-windows`)\n\
         \n\
         The guess is only about the oldest counter, so it is smaller if that is: {PARTS} \
         counters and a part of a fifth make a minute. 5 seconds into a window of 15,\n\
         two thirds of the oldest count, so of 60 calls {part}.\n\
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
         traffic it is. But a guess that can be too low can be\n\
         used. A client that knows where windows end calls in the last instant of one, and then \
         tries all the time; that is the last column of the\n\
         table below. Finer windows do not help: the oldest one may hold all {LIMIT} calls, and \
         as soon as it has begun to fade others pass.\n\
         \n\
         If instead the oldest counter counts *whole* until it is over, the windows that are read \
         cover more than a minute, so the sum is never below the truth.\n\
         Nothing is exceeded, with the same counters and the same one addition. The price: a \
         client that used up its limit waits up to one sub-window longer\n\
         than it must.\n\
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
            random.wrongly_admitted.to_string(),
            random.wrongly_refused.to_string(),
            bursts.wrongly_admitted.to_string(),
            bursts.wrongly_refused.to_string(),
            random.highest.max(bursts.highest).to_string(),
            under_attack(policy).highest.to_string(),
        ]
    };
    page.push(format_args!(
        "Ten minutes of random traffic ({} calls) and ten of bursts ({} calls), limit {LIMIT} a \
         minute:\n\n",
        grouped(random.calls.len() as u64),
        grouped(bursts.calls.len() as u64),
    ));
    page.table(
        [
            "",
            "random: wrongly admitted",
            "wrongly refused",
            "bursts: wrongly admitted",
            "wrongly refused",
            "highest of both",
            "highest of its adversary",
        ],
        &WINDOWS.map(row),
    );
    page.push(format_args!(
        "Ten minutes are few: in these bursts the guess with {PARTS} sub-windows lets more \
         through than the one with two windows does. Over an hour, below, it does not, though\n\
         one with 2 still does.\n\n"
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
            stats.wrongly_admitted.to_string(),
            stats.wrongly_refused.to_string(),
            under_attack(guess).highest.to_string(),
            alone(strict, &traffic).stats.wrongly_refused.to_string(),
            under_attack(strict).highest.to_string(),
        ]
    };
    page.push(format_args!(
        "## Diminishing returns\n\
         \n\
         The article's extreme is 60 windows of one second, at the price of reading them all at \
         each call. What does it buy? An hour of bursts ({} calls):\n\
         \n",
        grouped(traffic.calls.len() as u64),
    ));
    page.table(
        [
            "sub-windows",
            "counters read",
            "off by, on average",
            "guess: wrongly admitted",
            "wrongly refused",
            "highest of its adversary",
            "strict: wrongly refused",
            "highest of its adversary",
        ],
        &FINER.map(row),
    );
    page.push(format_args!(
        "The first of these is the guess of two windows. In how far the count is off, each step \
         down the table buys less than the one before, as the article says. In what passes \
         wrongly the\n\
         first step buys nothing here: 2 of 30 s let more through than 1 of 60 s, and only the \
         finer ones let less through. What none buys is the limit: {highest} of {LIMIT} for the \
         adversary in every\n\
         row, where the strict sum has {LIMIT} in every row and only gets more generous with more \
         windows. (What is off includes rounding up to whole calls.)\n\
         \n",
        highest = policy(AlgorithmKind::SubWindows, PARTS).most_in_any_window(1),
    ));
}
