//! What must hold for any bytes whatever; called by fuzzers and by the tests.

use crate::config::{
    Applies, ENTRIES_MAX, Entry, File, Request, RequestDescriptor, SameDomain, read,
};

/// Reads `data` as a file of descriptors, twice over, and asks for limits with words out of it.
///
/// # Panics
///
/// If an order of entries leads nowhere, if a file is refused without a mistake, if what is told
/// takes more than one line, or if what applies to a request depends on what else is asked. Any
/// other panic is a mistake too.
pub fn descriptors(data: &[u8]) {
    let file = File {
        name: "fuzz.yaml",
        bytes: data,
    };
    let (limits, told): (_, Vec<String>) = match read(&[file], SameDomain::Refused) {
        Ok(found) => {
            let notices = found.notices.iter().map(ToString::to_string);
            (found.limits, notices.collect())
        }
        Err(mistakes) => {
            assert!(!mistakes.0.is_empty(), "refused without a mistake");
            let told = mistakes.0.iter().map(ToString::to_string);
            check_lines(told.collect());
            return;
        }
    };
    check_lines(told);
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
    let ways: Vec<&[Entry<'_>]> = (1..=4).flat_map(|length| entries.windows(length)).collect();
    for ways in ways.chunks(50) {
        ask(&limits, domain.unwrap_or("d"), ways);
    }
    let many: Vec<Entry<'_>> = entries.iter().copied().cycle().take(ENTRIES_MAX).collect();
    ask(&limits, domain.unwrap_or("d"), &[&many]);
}

fn check_lines(told: Vec<String>) {
    for line in told {
        assert!(!line.contains(['\n', '\r']), "more than one line: {line:?}");
    }
}

/// Puts entries without an order into one: no entry is lost or made up, and the way is one.
fn check_order(limits: &crate::config::RateLimits, domain: &str, entries: &[Entry<'_>]) {
    let Some(way) = limits.in_order(domain, entries) else {
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
    assert_eq!(sorted(&way), sorted(entries), "other entries");
    let descriptors = [RequestDescriptor {
        entries: &way,
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
    assert_ne!(applies, Applies::Nothing, "a way to nothing");
}

/// Asks for all at once, and for each alone.
fn ask(limits: &crate::config::RateLimits, domain: &str, ways: &[&[Entry<'_>]]) {
    let descriptor = |entries| RequestDescriptor {
        entries,
        limit: None,
        hits: None,
    };
    let descriptors: Vec<RequestDescriptor<'_>> = ways.iter().copied().map(descriptor).collect();
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
    for entries in ways {
        check_order(limits, domain, entries);
    }
    for (together, descriptor) in matched(&descriptors).into_iter().zip(&descriptors) {
        let alone = matched(std::slice::from_ref(descriptor)).remove(0);
        let is_replaced = together == Applies::Nothing;
        assert!(together == alone || is_replaced, "depends on others");
    }
}
