//! Invariants that hold for any bytes; called by fuzzers and by the tests.

use crate::config::{
    Applies, ENTRIES_MAX, Entry, File, Request, RequestDescriptor, SameDomain, read,
};

/// Reads `data` as a file of descriptors, twice over, and matches requests that are made from its
/// words.
///
/// # Panics
///
/// If entries that were ordered match nothing, if a file is rejected without a mistake, if a
/// message has several lines, or if what applies to a descriptor depends on the others. Any other
/// panic is a defect, too.
pub fn descriptors(data: &[u8]) {
    let file = File {
        name: "fuzz.yaml",
        bytes: data,
    };
    let (limits, lines): (_, Vec<String>) = match read(&[file], SameDomain::Refused) {
        Ok(found) => {
            let notices = found.notices.iter().map(ToString::to_string);
            (found.limits, notices.collect())
        }
        Err(mistakes) => {
            assert!(!mistakes.0.is_empty(), "rejected without a mistake");
            let lines = mistakes.0.iter().map(ToString::to_string);
            check_lines(lines.collect());
            return;
        }
    };
    check_lines(lines);
    let both = read(&[file, file], SameDomain::Refused);
    assert!(both.is_err(), "two files have one domain");

    let text = String::from_utf8_lossy(data);
    let mut words =
        text.split(|character: char| character.is_whitespace() || ":'\",".contains(character));
    let domain = words.by_ref().find(|word| limits.has_domain(word));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).take(40).collect();
    let entries: Vec<Entry<'_>> = words
        .windows(3)
        .flat_map(|words| [(words[0], words[1]), (words[0], words[2]), (words[0], "")])
        .map(|(key, value)| Entry { key, value })
        .collect();
    let candidates = (1..=4).flat_map(|length| entries.windows(length));
    let candidates: Vec<&[Entry<'_>]> = candidates.collect();
    for candidates in candidates.chunks(50) {
        check_independence(&limits, domain.unwrap_or("d"), candidates);
    }
    let many: Vec<Entry<'_>> = entries.iter().copied().cycle().take(ENTRIES_MAX).collect();
    check_independence(&limits, domain.unwrap_or("d"), &[&many]);
}

fn check_lines(lines: Vec<String>) {
    for line in lines {
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
    }
}

/// Orders entries, and checks that none is lost or added, and that they match.
fn check_order(limits: &crate::config::RateLimits, domain: &str, entries: &[Entry<'_>]) {
    let Some(ordered) = limits.in_order(domain, entries) else {
        return;
    };
    let sorted = |entries: &[Entry<'_>]| {
        let pairs = entries
            .iter()
            .map(|entry| (entry.key.to_owned(), entry.value.to_owned()));
        let mut pairs: Vec<_> = pairs.collect();
        pairs.sort();
        pairs
    };
    assert_eq!(sorted(&ordered), sorted(entries), "other entries");
    let descriptors = [RequestDescriptor {
        entries: &ordered,
        limit: None,
        hits: None,
    }];
    let request = Request {
        domain,
        descriptors: &descriptors,
        hits_addend: 0,
    };
    let matched = limits.applying_to(&request);
    let applies = matched.expect("it is within bounds").descriptors.remove(0);
    assert_ne!(applies, Applies::Nothing, "ordered entries match nothing");
}

/// Matches all descriptors at once, and each alone.
fn check_independence(
    limits: &crate::config::RateLimits,
    domain: &str,
    candidates: &[&[Entry<'_>]],
) {
    let descriptor = |entries| RequestDescriptor {
        entries,
        limit: None,
        hits: None,
    };
    let descriptors = candidates.iter().copied().map(descriptor);
    let descriptors: Vec<RequestDescriptor<'_>> = descriptors.collect();
    let matched = |descriptors| {
        let request = Request {
            domain,
            descriptors,
            hits_addend: 0,
        };
        let matched = limits.applying_to(&request);
        matched.expect("it is within bounds").descriptors
    };
    if descriptors.is_empty() {
        return;
    }
    for entries in candidates {
        check_order(limits, domain, entries);
    }
    for (together, descriptor) in matched(&descriptors).into_iter().zip(&descriptors) {
        let alone = matched(std::slice::from_ref(descriptor)).remove(0);
        let is_replaced = together == Applies::Nothing;
        assert!(together == alone || is_replaced, "depends on others");
    }
}
