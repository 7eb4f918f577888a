//! Tests of requests that the intake rejects or changes.

use super::*;

fn intake() -> Intake {
    Intake {
        trusted: TrustedProxies::new(["10.0.0.0/8".parse().unwrap()]),
        headers_max: 5,
        uri_bytes_max: 300,
        body_bytes_max: 100,
        body_bytes_per_second_min: 0,
    }
}

fn checked(method: &str, target: &str, headers: &[(&str, &str)]) -> Result<Parts, RequestError> {
    let mut request = Request::builder().method(method).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    check(request.body(()).unwrap())
}

/// Checks a request over HTTP/2.
fn checked2(target: &str, headers: &[(&str, &str)]) -> Result<Parts, RequestError> {
    let mut request = Request::builder().version(Version::HTTP_2).uri(target);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    check(request.body(()).unwrap())
}

fn check(request: Request<()>) -> Result<Parts, RequestError> {
    let (mut head, ()) = request.into_parts();
    let peer = "192.0.2.1:5".parse().unwrap();
    let client = intake().check(&mut head, peer, forwarded::Scheme::Https)?;
    head.extensions.insert(client);
    Ok(head)
}

#[track_caller]
fn check_rejected(method: &str, target: &str, headers: &[(&str, &str)], expected: RequestError) {
    let result = checked(method, target, headers).map(|head| head.headers);
    assert_eq!(
        result.unwrap_err(),
        expected,
        "{method} {target} {headers:?}"
    );
}

#[test]
fn a_request_is_for_exactly_one_host() {
    let bad = RequestError::BadRequest;
    check_rejected("GET", "/", &[], bad);
    check_rejected("GET", "/", &[("host", "a"), ("host", "a")], bad);
    for host in [
        "", " ", "a b", "a@b", "a/b", "a\"b", "a:80:90", ":80", "[::1", "a%2fb", "a,b",
    ] {
        check_rejected("GET", "/", &[("host", host)], bad);
    }
    for host in [
        "a",
        "A.example",
        "a.example:8080",
        "a.example.",
        "[::1]:80",
        "127.0.0.1",
        "a_b",
    ] {
        let head = checked("GET", "/", &[("host", host)]).unwrap();
        assert_eq!(head.extensions.get::<Client>().unwrap().host(), host);
    }
}

#[test]
fn the_host_of_an_absolute_target_wins() {
    let head = checked("GET", "http://b.example:81/x?y=z", &[("host", "a.example")]).unwrap();
    assert_eq!(
        head.extensions.get::<Client>().unwrap().host(),
        "b.example:81"
    );
    assert_eq!(head.headers[HOST], "b.example:81");
    assert_eq!(head.uri, "/x?y=z");
    let head = checked("GET", "http://b.example", &[("host", "a.example")]).unwrap();
    assert_eq!(head.uri, "/");
    check_rejected("GET", "http://b.example/", &[], RequestError::BadRequest);
    check_rejected(
        "GET",
        "ftp://b.example/",
        &[("host", "a")],
        RequestError::BadRequest,
    );
    check_rejected(
        "GET",
        "http://u:p@b.example/",
        &[("host", "a")],
        RequestError::BadRequest,
    );
    check_rejected(
        "GET",
        "b.example:80",
        &[("host", "b.example:80")],
        RequestError::BadRequest,
    );
}

#[test]
fn methods_that_a_proxy_cannot_forward_are_rejected() {
    let host = [("host", "a")];
    check_rejected("CONNECT", "a:443", &host, RequestError::NotImplemented);
    check_rejected("TRACE", "/", &host, RequestError::NotImplemented);
    for method in ["GET", "POST", "OPTIONS", "PURGE"] {
        assert!(checked(method, "/", &host).is_ok(), "{method}");
    }
}

#[test]
fn sizes_are_checked_before_the_body_is_read() {
    let host = ("host", "a");
    check_rejected(
        "POST",
        "/",
        &[host, ("content-length", "101")],
        RequestError::TooLarge,
    );
    check_rejected(
        "POST",
        "/",
        &[host, ("content-length", "-1")],
        RequestError::BadRequest,
    );
    assert!(checked("POST", "/", &[host, ("content-length", "100")]).is_ok());
    let many = [host, ("a", ""), ("b", ""), ("c", ""), ("d", ""), ("e", "")];
    check_rejected("GET", "/", &many, RequestError::TooManyHeaders);
}

#[test]
fn a_transfer_coding_that_would_be_hidden_is_rejected() {
    let headers = [("host", "a"), ("transfer-encoding", "gzip, chunked")];
    check_rejected("POST", "/", &headers, RequestError::NotImplemented);
}

#[test]
fn a_checked_request_has_its_client_and_none_of_our_headers() {
    let headers = [
        ("host", "a"),
        ("anteroom-seat-ends", "9"),
        ("x-forwarded-for", "6.6.6.6"),
    ];
    let head = checked("GET", "/", &headers).unwrap();
    assert!(!head.headers.contains_key("anteroom-seat-ends"));
    let client = head.extensions.get::<Client>().unwrap();
    assert_eq!(client.address.to_string(), "192.0.2.1");
    assert_eq!(client.scheme, forwarded::Scheme::Https, "as the connection");
}

#[test]
fn the_limit_on_a_url_includes_its_query_but_not_its_host() {
    let host = [("host", "a")];
    let fits = format!("/{}?{}", "a".repeat(99), "b".repeat(199));
    assert!(checked("GET", &fits, &host).is_ok());
    assert!(checked("GET", &format!("http://a.example{fits}"), &host).is_ok());
    check_rejected("GET", &format!("{fits}c"), &host, RequestError::UriTooLong);
}

#[test]
fn in_http2_one_of_authority_and_host_is_enough() {
    let check = |target, hosts: &[&str], expected: Result<&str, RequestError>| {
        let headers: Vec<_> = hosts.iter().map(|host| ("host", *host)).collect();
        let found = checked2(target, &headers).map(|head| {
            assert_eq!(head.uri, "/x?y", "{target}");
            assert_eq!(head.headers.get_all(HOST).iter().count(), 1);
            head.headers[HOST].to_str().unwrap().to_owned()
        });
        assert_eq!(found, expected.map(str::to_owned), "{target} {hosts:?}");
    };
    let bad = Err(RequestError::BadRequest);
    check("https://a.example/x?y", &[], Ok("a.example"));
    check("https://a.example/x?y", &["A.example"], Ok("a.example"));
    check("/x?y", &["a.example"], Ok("a.example"));
    check("https://a.example/x?y", &["b.example"], bad);
    check("https://a.example/x?y", &["a.example", "a.example"], bad);
    check("https://a.example/x?y", &["a.example:443"], bad);
    check("https://u@a.example/x?y", &[], bad);
    check("ftp://a.example/x?y", &[], bad);
    check("/x?y", &[], bad);
}

#[test]
fn cookie_lines_of_http2_are_joined() {
    let check = |crumbs: &[&str], expected: &[&str]| {
        let headers: Vec<_> = crumbs.iter().map(|crumb| ("cookie", *crumb)).collect();
        let head = checked2("https://a/", &headers).unwrap();
        let found: Vec<_> = head.headers.get_all(COOKIE).iter().collect();
        assert_eq!(found, expected);
    };
    check(&["a=1", "b=2; c=3", "d"], &["a=1; b=2; c=3; d"]);
    check(&["a=1"], &["a=1"]);
    check(&[], &[]);
}
