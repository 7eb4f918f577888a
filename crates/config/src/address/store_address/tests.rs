//! Addresses in every form, valid and invalid.

use super::*;

fn parse(text: &str) -> ValkeyAddress {
    ValkeyAddress::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_form_is_read_and_shown_in_its_one_spelling() {
    let check = |text: &str, expected: &str| {
        let address = parse(text);
        assert_eq!(address.to_string(), expected, "{text}");
        assert_eq!(parse(expected), address, "{text}");
    };
    check("redis://10.0.0.5", "redis://10.0.0.5:6379");
    check(
        "redis://Redis.Internal:7000/",
        "redis://redis.internal:7000",
    );
    check("REDIS://a/0", "redis://a:6379");
    check("redis://a:/15", "redis://a:6379/15");
    check(
        "redis://[0:0::1]:1/2147483647",
        "redis://[::1]:1/2147483647",
    );
    check("valkey://a", "redis://a:6379");
    check("valkeys://a", "rediss://a:6379");
    check("rediss://a", "rediss://a:6379");
    check(
        "redis+sentinel://a,[::1],b:1/my-shop.1",
        "redis+sentinel://a:26379,[::1]:26379,b:1/my-shop.1",
    );
    check(
        "valkeys+Sentinel://a/shop/3",
        "rediss+sentinel://a:26379/shop/3",
    );
    check("redis+sentinel://a/s/", "redis+sentinel://a:26379/s");
    check("redis+cluster://a,b:1", "redis+cluster://a:6379,b:1");
    check("valkeys+cluster://a/", "rediss+cluster://a:6379");
}

#[test]
fn an_address_is_split_into_its_parts() {
    let address = parse("rediss+sentinel://u@[::1]:7,b/shop/2");
    let server = |host: &str, port| HostPort {
        host: host.to_owned(),
        port,
    };
    assert_eq!(
        address.topology,
        Topology::Sentinel {
            sentinels: vec![server("::1", 7), server("b", 26_379)],
            service: "shop".to_owned(),
        }
    );
    assert_eq!(address.database, 2);
    assert_eq!(address.tls, Some(ValkeyTls { ca_file: None }));
}

#[test]
fn credentials_are_decoded_and_shown_nowhere() {
    let check = |text: &str, username: Option<&str>, password: Option<&str>| {
        let address = parse(&format!("redis://{text}a:1/2"));
        assert_eq!(address.username.as_deref(), username, "{text}");
        assert_eq!(address.password.as_deref(), password, "{text}");
        assert_eq!(address.to_string(), "redis://a:1/2");
        assert_eq!(format!("{address:?}"), "ValkeyAddress(redis://a:1/2)");
    };
    check("", None, None);
    check("@", None, None);
    check("me@", Some("me"), None);
    check(":secret@", None, Some("secret"));
    check("me:se:cr,et@", Some("me"), Some("se:cr,et"));
    check("m%65:p%40%2F%3a%25%C3%A9é@", Some("me"), Some("p@/:%éé"));
}

#[test]
fn an_invalid_address_is_rejected_with_its_reason() {
    let check = |text: &str, expected| {
        assert_eq!(ValkeyAddress::parse(text), Err(expected), "{text}");
    };
    for text in ["", "a", "10.0.0.5:6379", "redis:a", "redis:/a", "://a"] {
        check(text, AddressError::Scheme);
    }
    for text in [
        "http://a",
        "redi://a",
        "redis+a://a",
        "redis+://a",
        "+cluster://a",
    ] {
        check(text, AddressError::Scheme);
    }
    check("redis://u:p@p@a", AddressError::UserInfo);
    check("redis://u:p/p@a", AddressError::UserInfo);
    check("redis+cluster://u:p@a,u:p@b", AddressError::UserInfo);
    for text in ["%", "%4", "%zz", "%+1", "%ff", "%é"] {
        check(&format!("redis://:{text}@a"), AddressError::Escape);
        check(&format!("redis://{text}@a"), AddressError::Escape);
    }
    check("redis://a%20b@a", AddressError::Username);
    let password = |error| AddressError::Password(error);
    check("redis://me:@a", password(PasswordError::Empty));
    check("redis://me:%0a@a", password(PasswordError::Character));
    for text in ["", ":6379", "/1", "u@", "a,,b", "a,"] {
        let host = AddressError::Host(HostError::Empty);
        check(&format!("redis://{text}"), host);
    }
    for text in ["a b", "*", "é", "[::1", "[fe80::1%25eth0]"] {
        let address = ValkeyAddress::parse(&format!("redis://{text}"));
        assert!(matches!(address, Err(AddressError::Host(_))), "{text}");
    }
    for text in ["a:0", "a:65536", "a:x", "a:+1", "::1", "me:secret"] {
        check(&format!("redis://{text}"), AddressError::Port);
    }
    check("redis://a,b", AddressError::SeveralServers);
    for text in ["x", "-1", "+1", "2147483648", "1/", "1/2", "/"] {
        check(&format!("redis://a/{text}"), AddressError::Database);
        check(
            &format!("redis+sentinel://a/s/{text}"),
            AddressError::Database,
        );
    }
    for text in ["", "/", "//1", "/a b", "/é", "/a%20b"] {
        check(&format!("redis+sentinel://a{text}"), AddressError::Service);
    }
    check("redis+cluster://a/0", AddressError::DatabaseOfCluster);
    check("redis://a?db=1", AddressError::Options);
    check("redis://a/1#b", AddressError::Options);
    let long = format!("redis://{}", "a,".repeat(5_000));
    check(&long, AddressError::TooLong);
}
