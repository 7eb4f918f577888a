//! Tests with headers of honest and malicious clients; `tests/it/fuzz_cookies.rs` generates more.

use super::*;

fn headers(lines: &[&[u8]]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("*/*"));
    for line in lines {
        headers.append(COOKIE, HeaderValue::from_bytes(line).unwrap());
    }
    headers
}

#[track_caller]
fn check_values(lines: &[&[u8]], expected: &[&str]) {
    let headers = headers(lines);
    let found = values(&headers, "__anteroom_shop");
    assert_eq!(*found, *expected, "{lines:?}");
}

#[test]
fn every_value_of_the_name_is_found_in_order() {
    check_values(&[], &[]);
    check_values(&[b""], &[]);
    check_values(&[b"__anteroom_shop=a"], &["a"]);
    check_values(
        &[
            b"x=1; __anteroom_shop=a;__anteroom_shop=b",
            b"__anteroom_shop=c",
        ],
        &["a", "b", "c"],
    );
}

#[test]
fn only_the_exact_name_matches() {
    check_values(
        &[b"__anteroom_shop2=a; __anteroom_sho=b; __Anteroom_shop=c; x__anteroom_shop=d"],
        &[],
    );
    check_values(&[b"x=__anteroom_shop=a; __anteroom_shop"], &[]);
}

#[test]
fn spaces_and_one_pair_of_quotes_around_a_value_are_dropped() {
    check_values(&[b" \t__anteroom_shop \t= a\t ;"], &["a"]);
    check_values(&[b"__anteroom_shop=\"a\""], &["a"]);
    check_values(&[b"__anteroom_shop=\"\"a\"\""], &["\"a\""]);
    check_values(&[b"__anteroom_shop=\""], &["\""]);
    check_values(&[b"__anteroom_shop=a b"], &["a b"]);
}

#[test]
fn a_value_may_contain_equals_signs_or_be_empty() {
    check_values(&[b"__anteroom_shop=a=b="], &["a=b="]);
    check_values(&[b"__anteroom_shop="], &[""]);
    check_values(&[b";;=;; __anteroom_shop==;"], &["="]);
}

#[test]
fn bytes_that_are_not_utf8_hide_no_other_cookie() {
    check_values(
        &[b"caf\xe9=\xff; __anteroom_shop=\xff; __anteroom_shop=a"],
        &["a"],
    );
}

#[test]
fn at_most_eight_values_are_examined() {
    let many = "__anteroom_shop=a; ".repeat(20);
    check_values(&[many.as_bytes()], &["a"; VALUES_MAX]);
}

#[track_caller]
fn check_without(lines: &[&[u8]], expected: &[&[u8]]) {
    let mut cleaned = headers(lines);
    without(&mut cleaned, PREFIX);
    assert_eq!(cleaned, headers(expected), "{lines:?}");
}

#[test]
fn the_cookies_of_all_rooms_are_removed_and_the_others_stay() {
    check_without(&[b"a=1; __anteroom_x=t; b=2"], &[b"a=1; b=2"]);
    check_without(&[b"__anteroom_x=t; a=1;b=\"2\""], &[b"a=1;b=\"2\""]);
    check_without(&[b"a=1; __anteroom_x=t"], &[b"a=1"]);
    check_without(
        &[b"a=1;__anteroom_x=t;__anteroom_y=u;  b=\xff"],
        &[b"a=1;  b=\xff"],
    );
    check_without(&[b"a=1; \t__anteroom_x =t; b"], &[b"a=1; b"]);
    check_without(&[b"a=1; __anteroom_; b=2"], &[b"a=1; b=2"]);
}

#[test]
fn a_header_without_our_cookies_is_unchanged() {
    for line in [
        b"a=1;  b=2 ;".as_slice(),
        b"",
        b" ; ;",
        b"a=__anteroom_x; x__anteroom_y=1; __ANTEROOM_z=2",
        b"\xff\xfe",
    ] {
        check_without(&[line], &[line]);
    }
}

#[test]
fn a_header_without_remaining_pairs_is_removed() {
    check_without(&[b"__anteroom_x=t"], &[]);
    check_without(&[b" __anteroom_x=t; ;__anteroom_y=u;"], &[]);
    check_without(
        &[b"__anteroom_x=t", b"a=1;", b"__anteroom_y=u; b=2"],
        &[b"a=1;", b"b=2"],
    );
}

#[test]
fn a_rewritten_header_stays_as_sensitive_as_it_was() {
    let mut line = HeaderValue::from_static("a=1; __anteroom_x=t");
    line.set_sensitive(true);
    let mut headers = HeaderMap::from_iter([(COOKIE, line)]);
    without(&mut headers, PREFIX);
    assert!(headers[COOKIE].is_sensitive());
}

const PLAIN: CookieSettings = CookieSettings {
    suffix: None,
    same_site: SameSite::Auto,
    secure: Secure::Auto,
};

#[track_caller]
fn check_set(same_site: SameSite, secure: Secure, is_https: bool, expected: &str) {
    let settings = CookieSettings {
        same_site,
        secure,
        ..PLAIN
    };
    let attributes = Attributes::of(&settings, is_https, 300);
    let header = set_cookie("__anteroom_x", "t-_9", &attributes);
    let expected = format!("__anteroom_x=t-_9; Path=/; HttpOnly; {expected}");
    assert_eq!(header, expected, "{settings:?}, https: {is_https}");
}

#[test]
fn the_attributes_are_those_of_the_config() {
    let (lax, strict) = ("SameSite=Lax; Max-Age=300", "SameSite=Strict; Max-Age=300");
    let secure = |text: &str| format!("{text}; Secure");
    check_set(SameSite::Auto, Secure::Auto, false, lax);
    check_set(SameSite::Auto, Secure::Auto, true, &secure(lax));
    check_set(SameSite::Lax, Secure::Always, false, &secure(lax));
    check_set(SameSite::Strict, Secure::Never, true, strict);
    check_set(SameSite::Strict, Secure::Always, true, &secure(strict));
}

#[test]
fn a_cookie_for_other_sites_is_partitioned_and_never_without_secure() {
    let everywhere = "SameSite=None; Max-Age=300; Secure; Partitioned";
    check_set(SameSite::None, Secure::Auto, true, everywhere);
    check_set(SameSite::None, Secure::Always, false, everywhere);
    let plain = "SameSite=Lax; Max-Age=300";
    check_set(SameSite::None, Secure::Auto, false, plain);
}

#[test]
fn deleting_keeps_the_attributes_and_sets_the_age_to_nothing() {
    let settings = CookieSettings {
        same_site: SameSite::None,
        ..PLAIN
    };
    assert_eq!(
        delete_cookie("__anteroom_x", &Attributes::of(&settings, true, 300)),
        "__anteroom_x=; Path=/; HttpOnly; SameSite=None; Max-Age=0; Secure; Partitioned"
    );
}

#[test]
fn debug_output_does_not_show_the_value_of_a_cookie() {
    let header = set_cookie("__anteroom_x", "secret", &Attributes::of(&PLAIN, true, 300));
    assert_eq!(format!("{header:?}"), "Sensitive");
}

#[test]
fn a_set_cookie_is_parsed_back_to_its_value() {
    let header = set_cookie("__anteroom_shop", "t-_9", &Attributes::of(&PLAIN, true, 1));
    let sent_back = header.as_bytes().split(|byte| *byte == b';').next();
    check_values(&[sent_back.unwrap()], &["t-_9"]);
}

#[test]
#[should_panic(expected = "not the value of a cookie")]
fn a_value_that_would_add_attributes_panics() {
    let _ = set_cookie(
        "__anteroom_x",
        "t; Domain=a",
        &Attributes::of(&PLAIN, true, 1),
    );
}
