//! Tests of each matching rule. `tests/it/reference.rs` has those of the reference service.

use super::request::{DESCRIPTOR_BYTES_MAX, DESCRIPTORS_MAX, ENTRIES_MAX, Override};
use super::*;
use crate::config::{File, SameDomain, read};

fn limits(text: &str) -> RateLimits {
    let file = File {
        name: "a.yaml",
        bytes: text.as_bytes(),
    };
    let read = read(&[file], SameDomain::Refused);
    read.unwrap_or_else(|mistakes| panic!("{mistakes}")).limits
}

fn entries<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<Entry<'a>> {
    let entry = |(key, value): &(&'a str, &'a str)| Entry { key, value };
    pairs.iter().map(entry).collect()
}

fn descriptor<'a>(entries: &'a [Entry<'a>]) -> RequestDescriptor<'a> {
    RequestDescriptor {
        entries,
        limit: None,
        hits: None,
    }
}

fn applying<'l>(
    limits: &'l RateLimits,
    descriptors: &[RequestDescriptor<'_>],
) -> Result<Vec<Applies<'l>>, RequestError> {
    let request = Request {
        domain: "d",
        descriptors,
        hits_addend: 0,
    };
    limits
        .applying_to(&request)
        .map(|matched| matched.descriptors)
}

fn applying_one<'l>(limits: &'l RateLimits, pairs: &[(&str, &str)]) -> Applies<'l> {
    let entries = entries(pairs);
    applying(limits, &[descriptor(&entries)]).unwrap().remove(0)
}

fn limit_of<'l>(limits: &'l RateLimits, pairs: &[(&str, &str)]) -> AppliedLimit<'l> {
    match applying_one(limits, pairs) {
        Applies::Limit(limit) => limit,
        other => panic!("{pairs:?}: {other:?}"),
    }
}

const MINUTE: &str = "rate_limit: {unit: minute, requests_per_unit: 5}";

#[test]
fn an_unknown_domain_has_no_limits_even_with_an_override() {
    let limits = limits("domain: d\n");
    let entries = entries(&[("k", "v")]);
    let mut descriptor = descriptor(&entries);
    descriptor.limit = Some(Override {
        requests_per_unit: 1,
        unit: 0,
    });
    let request = |domain| Request {
        domain,
        descriptors: std::slice::from_ref(&descriptor),
        hits_addend: 0,
    };
    let matched = limits.applying_to(&request("other")).unwrap();
    assert!(!matched.is_domain_known);
    assert_eq!(matched.descriptors, [Applies::Nothing]);
    let error = limits.applying_to(&request("d")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unit 0 of the limit of rate limit descriptor 0 is not known"
    );
}

#[test]
fn a_limit_of_the_request_overrides_those_of_files() {
    let text = "domain: d\ndescriptors:\n- key: k\n  shadow_mode: true\n  quota_mode: true\n  \
                rate_limit: {unit: minute, requests_per_unit: 5, name: n}\n";
    let limits = limits(text);
    let entries = entries(&[("k", "v"), ("deep", "")]);
    let overridden = |unit| {
        let mut descriptor = descriptor(&entries);
        descriptor.limit = Some(Override {
            requests_per_unit: 42,
            unit,
        });
        applying(&limits, &[descriptor])
    };
    let Applies::Limit(limit) = overridden(7).unwrap().remove(0) else {
        panic!("no limit");
    };
    assert_eq!((limit.requests_per_unit, limit.unit), (42, Unit::Week));
    assert_eq!(
        (limit.name, limit.is_shadow, limit.is_quota),
        ("", false, false)
    );
    assert_eq!(limit.metric, "d.k_v.deep");
    for unit in [0, 8, -1, i32::MAX] {
        let error = overridden(unit).unwrap_err();
        assert_eq!(
            error,
            RequestError::UnknownUnit {
                descriptor: 0,
                unit
            }
        );
    }
}

#[test]
fn a_limit_applies_only_where_the_last_entry_ends() {
    let text = format!(
        "domain: d\ndescriptors:\n- key: a\n  descriptors:\n  - key: b\n    {MINUTE}\n    \
         descriptors:\n    - key: c\n- key: x\n  {MINUTE}\n"
    );
    let limits = limits(&text);
    for pairs in [
        &[("a", "1")][..],
        &[("b", "1")],
        &[("a", "1"), ("c", "1")],
        &[("a", "1"), ("b", "1"), ("c", "1")],
        &[("a", "1"), ("b", "1"), ("x", "1")],
        &[("x", "1"), ("x", "1")],
        &[],
    ] {
        assert_eq!(applying_one(&limits, pairs), Applies::Nothing, "{pairs:?}");
    }
    assert_eq!(limit_of(&limits, &[("a", "1"), ("b", "2")]).metric, "d.a.b");
    assert_eq!(limit_of(&limits, &[("x", "1")]).metric, "d.x");
}

#[test]
fn no_limit_admits_everything_and_zero_admits_nothing() {
    let text = format!(
        "domain: d\ndescriptors:\n- key: k\n  {MINUTE}\n- key: k\n  value: friend\n\
         - key: k\n  value: foe\n  rate_limit: {{unit: day, requests_per_unit: 0}}\n"
    );
    let limits = limits(&text);
    assert_eq!(applying_one(&limits, &[("k", "friend")]), Applies::Nothing);
    assert_eq!(limit_of(&limits, &[("k", "foe")]).requests_per_unit, 0);
    assert_eq!(limit_of(&limits, &[("k", "else")]).requests_per_unit, 5);
}

#[test]
fn each_value_has_a_counter_of_its_own_unless_it_is_shared() {
    let text = format!(
        "domain: d\ndescriptors:\n- key: own\n  value: a*\n  {MINUTE}\n\
         - key: shared\n  value: a*\n  share_threshold: true\n  {MINUTE}\n  descriptors:\n  \
         - key: k\n    {MINUTE}\n- key: bare\n  {MINUTE}\n"
    );
    let limits = limits(&text);
    let counter = |pairs: &[(&str, &str)]| limit_of(&limits, pairs).counter;
    assert_ne!(counter(&[("own", "a1")]), counter(&[("own", "a2")]));
    assert_ne!(counter(&[("bare", "1")]), counter(&[("bare", "2")]));
    assert_eq!(counter(&[("shared", "a1")]), counter(&[("shared", "a2")]));
    // A client that sends the pattern itself shares the counter, too.
    assert_eq!(counter(&[("shared", "a*")]), counter(&[("shared", "a2")]));
    let deep = |first, second| counter(&[("shared", first), ("k", second)]);
    assert_eq!(deep("a1", "x"), deep("a2", "x"));
    assert_ne!(deep("a1", "x"), deep("a1", "y"));
}

#[test]
fn texts_that_join_alike_have_different_counters() {
    let text = format!(
        "domain: d\ndescriptors:\n- key: a_b\n  {MINUTE}\n- key: a\n  value: b\n  {MINUTE}\n\
         - key: a\n  {MINUTE}\n"
    );
    let limits = limits(&text);
    let counters = [("a_b", ""), ("a", "b"), ("a_b", "c"), ("a", "b_c")]
        .map(|pair| limit_of(&limits, &[pair]).counter);
    for (index, counter) in counters.iter().enumerate() {
        assert!(!counters[index + 1..].contains(counter), "{counter:?}");
    }
}

#[test]
fn a_replaced_limit_does_not_apply() {
    let limit = |name: &str, replaces: &str| {
        format!(
            "- key: {name}\n  rate_limit: {{unit: day, requests_per_unit: 1, name: {name}, \
             replaces: [{replaces}]}}\n"
        )
    };
    let text = "domain: d\ndescriptors:\n".to_owned()
        + &limit("a", "")
        + &limit("b", "{name: a}, {name: nobody}")
        + &limit("c", "{name: d}")
        + &limit("d", "{name: c}")
        + "- key: free\n  rate_limit: {unlimited: true, name: free, replaces: [{name: a}]}\n"
        + "- key: f\n  rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: free}]}\n";
    let limits = limits(&text);
    let counts = |keys: &[&str]| -> Vec<String> {
        let each: Vec<Vec<Entry<'_>>> = keys.iter().map(|key| entries(&[(key, "1")])).collect();
        let each: Vec<RequestDescriptor<'_>> =
            each.iter().map(|entries| descriptor(entries)).collect();
        let counts = applying(&limits, &each).unwrap();
        let counts = counts.into_iter().map(|applies| match applies {
            Applies::Nothing => "-".to_owned(),
            Applies::Unlimited => "free".to_owned(),
            Applies::Limit(limit) => limit.metric.into_owned(),
        });
        counts.collect()
    };
    assert_eq!(counts(&["a", "c"]), ["d.a", "d.c"]);
    assert_eq!(counts(&["a", "b"]), ["-", "d.b"]);
    assert_eq!(counts(&["b", "a", "a"]), ["d.b", "-", "-"]);
    // They replace each other, as in the reference.
    assert_eq!(counts(&["c", "d"]), ["-", "-"]);
    // An unlimited descriptor replaces, and cannot be replaced.
    assert_eq!(counts(&["a", "free"]), ["-", "free"]);
    assert_eq!(counts(&["free", "f"]), ["free", "d.f"]);
}

#[test]
fn hits_of_a_descriptor_go_before_those_of_the_request() {
    let limits = limits(&format!("domain: d\ndescriptors:\n- key: k\n  {MINUTE}\n"));
    let entries = entries(&[("k", "v")]);
    let check = |hits, hits_addend, expected| {
        let mut descriptor = descriptor(&entries);
        descriptor.hits = hits;
        let request = Request {
            domain: "d",
            descriptors: &[descriptor],
            hits_addend,
        };
        let matched = limits.applying_to(&request).unwrap();
        let Applies::Limit(limit) = &matched.descriptors[0] else {
            panic!("no limit");
        };
        assert_eq!(limit.hits, expected);
    };
    check(None, 0, 1);
    check(None, 7, 7);
    check(Some(0), 7, 0);
    check(Some(u64::MAX), 7, u64::MAX);
}

#[test]
fn a_request_out_of_bounds_is_rejected_with_a_reason() {
    let limits = limits("domain: d\n");
    let check = |descriptors: &[RequestDescriptor<'_>], expected: Result<(), RequestError>| {
        assert_eq!(applying(&limits, descriptors).map(|_| ()), expected);
    };
    let pairs = vec![("k", "v"); ENTRIES_MAX + 1];
    let entries = entries(&pairs);
    let within = descriptor(&entries[..ENTRIES_MAX]);
    check(&[], Err(RequestError::NoDescriptors));
    check(&vec![within; DESCRIPTORS_MAX], Ok(()));
    let found = DESCRIPTORS_MAX + 1;
    check(
        &vec![within; found],
        Err(RequestError::TooManyDescriptors { found }),
    );
    check(
        &[within, descriptor(&entries)],
        Err(RequestError::TooManyEntries {
            descriptor: 1,
            found: ENTRIES_MAX + 1,
        }),
    );
    let value = "x".repeat(DESCRIPTOR_BYTES_MAX);
    let long = |key| [Entry { key, value: &value }];
    check(&[descriptor(&long(""))], Ok(()));
    let bytes = DESCRIPTOR_BYTES_MAX + 1;
    check(
        &[descriptor(&long("k"))],
        Err(RequestError::TooLong {
            descriptor: 0,
            bytes,
        }),
    );
    let request = Request {
        domain: "",
        descriptors: &[],
        hits_addend: 0,
    };
    let error = limits.applying_to(&request).unwrap_err();
    assert_eq!(error.to_string(), "rate limit domain must not be empty");
}
