//! Clients cannot get around a room by another spelling of its path.

use anteroom_config::{Host, Route};
use anteroom_proxy::path::{Decoding, Readings};
use anteroom_proxy::route::{AmbiguousPathError, Routes};
use proptest::prelude::*;

/// Spellings of a path that some origin still takes for the same path.
const DISGUISES: [fn(&str) -> String; 20] = [
    |path| format!("/{path}"),
    |path| path.replace('/', "//"),
    |path| path.replace('/', "/./"),
    |path| format!("/x/..{path}"),
    |path| format!("/x/%2e%2E{path}"),
    |path| format!("/x/.%2e{path}"),
    |path| format!("/../..{path}"),
    |path| path.replace('/', "\\").replacen('\\', "/", 1),
    |path| format!("/x\\..{path}"),
    |path| format!("/x%2f..{path}"),
    |path| format!("/x%5C..{path}"),
    |path| path.replace('/', "%2F").replacen("%2F", "/", 1),
    |path| path.replace('/', "/;a=b/"),
    |path| format!("{path};jsessionid=1"),
    |path| format!("/x/..;{path}"),
    |path| format!("/x/..%3Bz{path}"),
    |path| escape(path, |byte| format!("%{byte:02x}")),
    |path| escape(path, |byte| format!("%{byte:02X}")),
    |path| escape(path, |byte| format!("%u{byte:04x}")),
    str::to_uppercase,
];

fn escape(path: &str, write: fn(u8) -> String) -> String {
    let escaped = path.bytes().map(|byte| match byte {
        b'/' => "/".to_owned(),
        byte => write(byte),
    });
    escaped.collect()
}

fn any_disguise() -> impl Strategy<Value = fn(&str) -> String> {
    prop::sample::select(DISGUISES.to_vec())
}

/// Returns a path as a room has it: whole segments, nothing to normalise.
fn plain_path() -> impl Strategy<Value = String> {
    prop::collection::vec("[a-z0-9_~-]{1,6}", 1..4).prop_map(|segments| {
        let segments = segments.iter().map(|segment| format!("/{segment}"));
        segments.collect()
    })
}

fn route(path: &str) -> Vec<Route> {
    vec![Route {
        host: Host::Any,
        path: path.to_owned(),
    }]
}

fn find(paths: &[&str], sent: &str) -> Result<Option<usize>, AmbiguousPathError> {
    find_under(Decoding::Once, paths, sent)
}

fn find_under(
    decoding: Decoding,
    paths: &[&str],
    sent: &str,
) -> Result<Option<usize>, AmbiguousPathError> {
    let rooms: Vec<_> = paths.iter().map(|path| route(path)).collect();
    let routes = Routes::new(rooms.iter().map(Vec::as_slice)).unwrap();
    routes.find("any.example", &Readings::under(decoding, sent).unwrap())
}

/// Encodes a path like a client whose path is decoded on the way.
fn encoded(path: &str) -> String {
    path.replace('%', "%25")
        .replace('?', "%3F")
        .replace('#', "%23")
}

#[test]
fn a_second_slash_may_begin_a_host() {
    assert!(find(&["/9", "/~/9"], "//~/9").is_err());
    assert_eq!(find(&["/8", "/~/9"], "//~/9"), Ok(Some(1)));
}

proptest! {
    #[test]
    fn a_disguised_path_is_covered_by_the_room_of_the_plain_path(
        path in plain_path(),
        below in prop::option::of("[a-z]{1,4}"),
        first in any_disguise(),
        second in any_disguise(),
    ) {
        let sent = below.map_or_else(|| path.clone(), |below| format!("{path}/{below}"));
        prop_assert_eq!(find(&[&path], &sent), Ok(Some(0)));
        prop_assert_eq!(find(&[&path], &first(&sent)), Ok(Some(0)), "{}", first(&sent));
        // Combinations of disguises, except those that need two decodings.
        let twice = second(&first(&sent));
        if !first(&sent).contains('%') {
            prop_assert_eq!(find(&[&path], &twice), Ok(Some(0)), "{}", twice);
        }
    }

    #[test]
    fn a_path_that_is_disguised_behind_a_second_encoding_is_covered_too(
        path in plain_path(),
        end in prop::sample::select(vec!["", "?x", "#x", "?/../x"]),
        disguise in any_disguise(),
    ) {
        let sent = encoded(&format!("{}{end}", disguise(&path)));
        let found = find_under(Decoding::Twice, &[&path], &sent);
        prop_assert_eq!(found, Ok(Some(0)), "{}", sent);
    }

    #[test]
    fn with_two_rooms_a_disguise_leads_to_its_room_or_nowhere(
        path in plain_path(),
        other in plain_path(),
        disguise in any_disguise(),
    ) {
        let starts_alike = path.starts_with(&other) || other.starts_with(&path);
        prop_assume!(!starts_alike && path != "/x" && other != "/x");
        let sent = disguise(&path);
        let found = find(&[&other, &path], &sent);
        // Some origins take `//a/b` for the path `/b` of a host `a`.
        let behind_host = path.match_indices('/').nth(1).map(|(at, _)| &path[at..]);
        let has_other_host = sent.starts_with("//")
            && behind_host.is_some_and(|path| path.starts_with(&other));
        if !(has_other_host && found.is_err()) {
            prop_assert_eq!(found, Ok(Some(1)), "{}", sent);
        }
        // Out of one room into the other.
        let climbing = format!("{other}/..{}{}", "/..".repeat(other.matches('/').count()), sent);
        if let Ok(found) = find(&[&other, &path], &climbing) {
            prop_assert_eq!(found, Some(1), "{}", climbing);
        }
    }

    #[test]
    fn any_text_at_all_is_read_without_harm(
        path in ".{0,60}",
        odd in "[/.%;\\\\2eEfF5cCuU0-9]{0,60}",
    ) {
        for path in [path, format!("/{odd}")] {
            if let Ok(readings) = Readings::of(&path) {
                prop_assert_eq!(readings.iter().next(), Some(path.as_str()));
                prop_assert!(readings.iter().all(|reading| reading.starts_with('/')));
                prop_assert!(readings.decoded().next().is_some());
                let normal = readings.normal();
                prop_assert!(!normal.contains("//") && !normal.contains("/../"), "{}", normal);
            }
        }
    }
}
