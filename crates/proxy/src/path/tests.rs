//! Tests of the readings of ordinary and disguised paths.

use super::*;

fn readings(path: &str) -> Vec<String> {
    let mut texts: Vec<_> = Readings::of(path)
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    texts.sort();
    texts.dedup();
    texts
}

#[test]
fn an_ordinary_path_has_one_reading() {
    for path in ["/", "/shop", "/shop/", "/a/b.html", "/a/b..c", "/~x/@y:z"] {
        assert_eq!(readings(path), [path], "{path}");
        assert_eq!(Readings::of(path).unwrap().normal(), path);
    }
}

#[test]
fn every_disguise_of_shop_reads_as_shop() {
    let disguises = [
        "//shop",
        "/./shop",
        "/x/../shop",
        "/%73hop",
        "/%73%68%6F%70",
        "/%2e/shop",
        "/%2E%2e/shop",
        "/x/%2e./shop",
        "/\\shop",
        "/x/..\\shop",
        "\\",
        "/x%2f..%2fshop",
        "/%2fshop",
        "/%5cshop",
        "/;a=b/shop",
        "/shop;jsessionid=1",
        "/x/..;/shop",
        "/x/..;y=1/shop",
        "/x/%2e%2e%3b/shop",
        "/%u0073hop",
        "/x/.%u002e/shop",
        "/../../shop",
        "/x//../../shop",
        "/shop%3bx",
    ];
    for path in disguises.into_iter().filter(|path| path.starts_with('/')) {
        assert!(
            readings(path).contains(&"/shop".to_owned()),
            "{path}: {:?}",
            readings(path)
        );
        assert_eq!(Readings::of(path).unwrap().normal(), "/shop", "{path}");
    }
}

#[test]
fn a_path_that_leaves_the_shop_still_reads_as_the_shop() {
    for path in [
        "/shop/..",
        "/shop/../x",
        "/shop%2f..",
        "/shop/%2e%2e/x",
        "/shop/..;/x",
    ] {
        let inside = readings(path)
            .iter()
            .any(|path| path == "/shop" || path.starts_with("/shop/"));
        assert!(inside, "{path}: {:?}", readings(path));
        assert!(Readings::of(path).unwrap().can_escape(), "{path}");
    }
}

#[test]
fn a_host_before_the_shop_reads_as_the_shop() {
    for path in [
        "//x/shop",
        "///x/shop",
        "/\\x/shop",
        "/\\\\x/shop",
        "//a@b:9/shop",
        "//[::1]/shop",
        "//x\\shop",
        "//x;/shop",
        "//x/y/../shop",
        "//x//shop",
        "/%2fx/shop",
        "/%5cx%5cshop",
    ] {
        let readings = Readings::of(path).unwrap();
        let has_shop = readings.decoded().any(|path| path == "/shop");
        assert!(has_shop, "{path}: {readings:?}");
        assert!(readings.can_escape(), "{path}");
    }
    assert_eq!(readings("//x"), ["/", "//x", "/x"]);
    assert_eq!(Readings::of("//x/shop").unwrap().normal(), "/x/shop");
}

#[test]
fn an_unmerged_double_slash_can_swallow_a_dot_dot() {
    // Merged first, `..` removes `x`; unmerged, it removes the empty segment.
    assert_eq!(
        readings("/x//../shop"),
        ["/shop", "/x/../shop", "/x//../shop", "/x/shop"]
    );
}

#[test]
fn double_encoding_stays_literal() {
    assert_eq!(
        readings("/%252e%252e/shop"),
        ["/%252e%252e/shop", "/%2e%2e/shop"]
    );
}

#[test]
fn invalid_escapes_stay_literal() {
    for path in ["/100%", "/%zz", "/%4", "/%u12", "/%u12g4"] {
        assert_eq!(readings(path), [path], "{path}");
    }
}

#[test]
fn control_bytes_and_overlong_characters_are_rejected() {
    for path in [
        "/%00",
        "/shop%00.css",
        "/%0a",
        "/%7F",
        "/a\u{1}",
        "/a\tb",
        "/%u0000",
    ] {
        assert_eq!(
            Readings::of(path).unwrap_err(),
            BadPathError::Control,
            "{path}"
        );
    }
    for path in [
        "/%c0%af",
        "/%C1%9c",
        "/%e0%80%af",
        "/%f0%80%80%af",
        "/x/%c0%ae%c0%ae/shop",
    ] {
        assert_eq!(
            Readings::of(path).unwrap_err(),
            BadPathError::Overlong,
            "{path}"
        );
    }
    for path in ["", "*", "shop", "http://x/"] {
        assert_eq!(
            Readings::of(path).unwrap_err(),
            BadPathError::NotAbsolute,
            "{path}"
        );
    }
}

#[test]
fn non_ascii_text_and_stray_bytes_are_accepted() {
    assert_eq!(readings("/l%C3%A4den"), ["/l%C3%A4den", "/läden"]);
    assert_eq!(readings("/caf%E9/x"), ["/caf%E9/x", "/caf\u{fffd}/x"]);
}

#[test]
fn only_an_excessive_disguise_is_rejected() {
    let absurd = "/%2e%2e;x/..\\%5c//%2f./%3b".repeat(200);
    assert_eq!(
        Readings::of(&absurd).unwrap_err(),
        BadPathError::TooManyReadings
    );
    let honest = format!("/wiki/{}", "%E4%BA%AC".repeat(800));
    assert_eq!(readings(&honest).len(), 2);
}

#[test]
fn decoded_readings_have_no_escapes() {
    let readings = Readings::of("/%73tatic/a%2Fb").unwrap();
    assert_eq!(
        readings.decoded().collect::<Vec<_>>(),
        ["/static/a%2Fb", "/static/a/b"]
    );
}

/// Returns the readings for origins that may decode twice.
fn twice(path: &str) -> Vec<String> {
    let readings = Readings::under(Decoding::Twice, path).unwrap();
    let mut texts: Vec<_> = readings.iter().map(str::to_owned).collect();
    texts.sort();
    texts.dedup();
    texts
}

#[test]
fn a_doubly_encoded_shop_is_a_shop() {
    let disguises = [
        "/shop%3fx",
        "/shop%23x",
        "/%73hop%3Fx",
        "/%2573hop",
        "/%25%37%33hop",
        "/%%37%33hop",
        "/%u002573hop",
        "/x/%252e%252e/shop",
        "/x/%2e%2e/%2573hop",
        "/x%252f..%252fshop",
        "/x%252F..%2Fshop",
        "/x/..%255cshop",
        "/shop%253fx",
        "/shop%2500.css",
        "/shop%250a",
        "/shop;a=%253f",
        "/%252573hop/..%252f..%252fshop",
    ];
    for path in disguises {
        assert!(
            twice(path).contains(&"/shop".to_owned()),
            "{path}: {:?}",
            twice(path)
        );
        let is_read_once = readings(path).contains(&"/shop".to_owned());
        assert!(!is_read_once || path.contains(';'), "{path}");
    }
    assert_eq!(
        Readings::under(Decoding::Twice, "/%25c0%25afshop").unwrap_err(),
        BadPathError::Overlong
    );
}

#[test]
fn a_second_decoding_adds_readings_only_for_remaining_escapes() {
    for path in [
        "/",
        "/shop",
        "/%73hop",
        "/a%2Fb",
        "/l%C3%A4den",
        "/a;b//c/../d",
        "/100%",
        "/caf%E9/x",
    ] {
        assert_eq!(twice(path), readings(path), "{path}");
    }
    assert_eq!(twice("/a%3Fb"), ["/a", "/a%3Fb", "/a?b"]);
    assert_eq!(twice("/100%25"), ["/100%", "/100%25"]);
    assert_eq!(twice("/%252561"), ["/%252561", "/%2561", "/%61"]);
}

#[test]
fn the_normal_form_is_always_decoded_once() {
    for path in ["/a%3Fb", "/%2573hop", "/x/%252e%252e/shop", "/%73hop"] {
        let once = Readings::of(path).unwrap();
        let twice = Readings::under(Decoding::Twice, path).unwrap();
        assert_eq!(once.normal(), twice.normal(), "{path}");
    }
}
