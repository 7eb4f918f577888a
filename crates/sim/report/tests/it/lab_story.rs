//! docs/rate-limits.md matches the code, and its sentences match its tables.

use std::fs;

use anteroom_report::lab::story::tell;

use crate::pages::{self, docs};

#[test]
fn the_page_about_counting_requests_matches_the_code() {
    let story = tell();
    pages::check(&story);
    check_sentences(&story.markdown());
}

/// Checks what the text claims about its tables.
fn check_sentences(markdown: &str) {
    let tables = tables(markdown);
    let [windows, finer, bucket, nodes, load, writers, shared] = &tables[..] else {
        panic!("seven tables, not {}", tables.len());
    };
    let [fixed, two, five, strict, log] = &windows[..] else {
        panic!("five kinds of windows: {windows:#?}");
    };
    for column in [0, 2] {
        let better = two[column].max(five[column]);
        assert!(fixed[column] > 2 * better, "{windows:#?}");
    }
    assert!(
        two[0] > five[0],
        "in random traffic the finer guess is better"
    );
    assert!(two[2] < five[2], "in ten minutes of bursts it is not");
    check_returns(finer);
    for exact in [strict, log] {
        assert_eq!((exact[0], exact[2], exact[5]), (0, 0, 100));
    }
    assert_eq!((log[1], log[3]), (0, 0));
    assert_eq!([fixed[5], two[5], five[5]], [200, 199, 199]);
    assert!(
        bucket.iter().all(|row| row[0] <= 100),
        "never above its capacity"
    );
    let [first, .., last] = &nodes[..] else {
        panic!("several numbers of nodes: {nodes:#?}");
    };
    assert!(first[1] == 0 && last[1] > 10 * last[2]);
    assert!(
        first[3] * 10 < first[2] && last[3] < last[2] && last[3] * 10 > last[2] * 8,
        "leases: {nodes:#?}"
    );
    assert!(
        load.is_sorted_by_key(|row| row[1]),
        "the more load, the more pass"
    );
    for row in load {
        assert!(row[3] <= 100, "one store is never above: {row:?}");
        let is_ahead = row[1] <= 120;
        assert!(row[4] < 120 || !is_ahead && row[4] * 2 < row[1], "{row:?}");
    }
    check_nodes(nodes);
    assert!(writers.is_sorted_by_key(|row| row[1]));
    for row in &writers[2..] {
        assert!(row[3] < row[0] && row[5] <= row[2], "pauses: {row:?}");
    }
    check_measured(markdown);
    let [
        alone,
        chatty,
        gossip,
        queue,
        kafka,
        memcached,
        valkey,
        leases,
    ] = &shared[..]
    else {
        panic!("eight ways of sharing: {shared:#?}");
    };
    assert!(alone[1] > 1_000 && chatty[1] > 0 && queue[1] > 0);
    assert!(gossip[1] > chatty[1] && kafka[1] > chatty[1], "{shared:#?}");
    assert_eq!((memcached[1], valkey[1], leases[1]), (0, 0, 0));
    assert!(leases[0] < valkey[0] && leases[3] > 0 && leases[4] < valkey[4]);
}

/// Checks which of the finer guesses reduce mistakes, and what none improves.
fn check_returns(finer: &[Vec<u64>]) {
    let [one, two, four, fifteen, sixty] = [0, 1, 2, 3, 4].map(|row| finer[row][2]);
    assert!(two > one, "two parts allow more than one");
    assert!(
        one > four && four > fifteen && fifteen > sixty,
        "all finer ones allow less: {finer:#?}"
    );
    let off = finer.iter().map(|row| row[1]).collect::<Vec<_>>();
    let steps: Vec<u64> = off.windows(2).map(|pair| pair[0] - pair[1]).collect();
    assert!(
        steps.is_sorted_by(|step, next| step > next),
        "each step gains less: {steps:?}"
    );
    for row in finer {
        assert_eq!((row[4], row[6]), (199, 100), "{finer:#?}");
    }
    assert!(finer.is_sorted_by(|one, next| one[1] >= next[1] && one[5] >= next[5]));
}

/// Checks that twice the nodes with twice the requests are nearly four times the messages, once
/// there are many.
fn check_nodes(nodes: &[Vec<u64>]) {
    let messages = |row: usize| nodes[row][1];
    let [eight, sixteen, thirty_two] = [3, 4, 6].map(messages);
    for (some, twice) in [(eight, sixteen), (sixteen, thirty_two)] {
        let times = twice * 10 / some;
        assert!((39..45).contains(&times), "{times} tenths: {nodes:#?}");
    }
}

/// Both pages have the measured numbers.
fn check_measured(markdown: &str) {
    let measured = "2.4 to 6.6 %";
    let benchmarks =
        fs::read_to_string(docs().join("explanation/benchmarks-limits.md")).expect("it is there");
    let row = benchmarks
        .lines()
        .find(|line| line.starts_with("| 16 | 1,600 |"));
    assert!(row.expect("sixteen nodes on memcached").contains(measured));
    assert!(markdown.contains(measured));
}

/// Returns the numbers of the tables without the first column, in hundredths or tenths where a cell
/// has fractions, and without units.
fn tables(markdown: &str) -> Vec<Vec<Vec<u64>>> {
    let mut tables: Vec<Vec<Vec<u64>>> = Vec::new();
    let mut is_inside = false;
    for line in markdown.lines() {
        let is_row = line.starts_with("| ");
        if is_row && !is_inside {
            tables.push(Vec::new());
        } else if is_row && !line.starts_with("| ---") {
            let cells = line.trim_matches('|').split(" | ").skip(1);
            let row = cells.map(number).collect();
            tables
                .last_mut()
                .expect("a row stands in a table")
                .push(row);
        }
        is_inside = is_row;
    }
    tables
}

fn number(cell: &str) -> u64 {
    let digits: String = cell.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("a cell has a number")
}
