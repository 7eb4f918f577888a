//! Key sets that are accepted, and errors of those that are not.

use anteroom_limit_http::jwt::{FILE_BYTES_MAX, KEYS_MAX, KeySet};
use serde_json::{Value, json};

use crate::tokens::issuer::{Issuer, base64, claims, key_set, sub, verifier};

fn mistakes(text: &str) -> Vec<String> {
    let mistakes = KeySet::parse(text.as_bytes()).unwrap_err();
    mistakes.iter().map(ToString::to_string).collect()
}

fn of_key(key: Value) -> String {
    let mistakes = mistakes(&json!({ "keys": [key] }).to_string());
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes[0].clone()
}

/// Returns a key with one member changed; `null` removes it.
fn with(mut key: Value, member: &str, value: Value) -> Value {
    let members = key.as_object_mut().unwrap();
    if value.is_null() {
        members.remove(member);
    } else {
        members.insert(member.to_owned(), value);
    }
    key
}

#[test]
fn each_kind_of_signing_key_is_read_and_encryption_keys_are_skipped() {
    let keys = Issuer::all().map(|issuer| issuer.jwk("a"));
    let named = keys.iter().enumerate();
    let named = named.map(|(at, key)| with(key.clone(), "kid", json!(at.to_string())));
    let mut keys: Vec<Value> = named.collect();
    keys.push(json!({ "kty": "RSA", "use": "enc", "n": "what", "e": "ever", "kid": "0" }));
    assert_eq!(key_set(&keys).len(), 4);
    let mut more = keys[0].clone();
    more["x5c"] = json!(["a certificate"]);
    more["key_ops"] = json!(["verify"]);
    more["alg"] = json!("RS512");
    assert_eq!(key_set(&[more]).len(), 1);
}

#[test]
fn a_malformed_set_has_one_error() {
    let check = |text: &str, expected: &str| assert_eq!(mistakes(text), [expected], "{text}");
    let no_set = |line, column| {
        format!(
            "found no JSON object with a list of keys (line {line}, column {column}), allowed: \
             {{\"keys\": [...]}}"
        )
    };
    check("", &no_set(1, 0));
    check("{\"keys\":\n 7}", &no_set(2, 2));
    check("-----BEGIN PUBLIC KEY-----", &no_set(1, 2));
    check("{\"keys\": []}", "found 0 keys, allowed: 1 to 100");
    let many = vec![json!({}); KEYS_MAX + 1];
    check(
        &json!({ "keys": many }).to_string(),
        "found 101 keys, allowed: 1 to 100",
    );
    let only = json!({ "keys": [{ "use": "enc" }] });
    check(
        &only.to_string(),
        "found no key for signatures, allowed: at least one",
    );
    let long = " ".repeat(FILE_BYTES_MAX + 1);
    check(&long, "it is too large: at most 262144 bytes are allowed");
}

/// Checks the one mistake of a key.
fn check(key: Value, expected: &str) {
    let found = of_key(key);
    assert!(found.starts_with("key 1"), "{found}");
    assert!(found.contains(expected), "{found}");
}

#[test]
fn a_key_of_another_kind_lists_the_allowed_ones() {
    let [rsa, point] = [Issuer::rsa().jwk("r"), Issuer::p256().jwk("c")];
    let edwards = Issuer::ed25519().jwk("e");
    check(
        json!({}),
        "key 1: kty: missing, allowed: \"RSA\", \"EC\" or \"OKP\"",
    );
    check(
        json!({ "kty": "DSA", "kid": "x" }),
        "key 1 (kid \"x\"): kty: found \"DSA\", allowed",
    );
    check(
        with(point.clone(), "crv", json!("P-521")),
        "crv: found \"P-521\", allowed: \"P-256\" or \"P-384\"",
    );
    check(
        with(edwards, "crv", json!("X25519")),
        "crv: found \"X25519\", allowed: \"Ed25519\"",
    );
    check(
        with(rsa.clone(), "alg", json!("ES256")),
        "alg: found \"ES256\", allowed: \"RS256\" or",
    );
    check(
        with(rsa.clone(), "alg", json!("HS256")),
        "alg: found \"HS256\", allowed: \"RS256\" or",
    );
    check(
        with(point, "alg", json!("none")),
        "alg: found \"none\", allowed: \"ES256\" for this key",
    );
    check(
        with(rsa.clone(), "use", json!("tls")),
        "use: found \"tls\", allowed: \"sig\" or \"enc\"",
    );
    check(
        with(rsa.clone(), "key_ops", json!(["sign"])),
        "key_ops: found no \"verify\"",
    );
    check(
        with(rsa.clone(), "kid", json!(7)),
        "kid: found another value, allowed: a text of 1 to 256 bytes",
    );
    check(
        with(rsa, "kid", json!("k".repeat(257))),
        "kid: found another value",
    );
}

#[test]
fn a_key_with_wrong_numbers_states_the_allowed_ones() {
    let [rsa, point] = [Issuer::rsa().jwk("r"), Issuer::p256().jwk("c")];
    let edwards = Issuer::ed25519().jwk("e");
    check(
        with(rsa.clone(), "n", json!(null)),
        "n: missing, allowed: 256 to 1024 bytes in base64url",
    );
    check(
        with(rsa.clone(), "n", json!("a+b/")),
        "n: found no base64url",
    );
    check(
        with(rsa.clone(), "n", json!(base64([0xff; 128]))),
        "n: found 1024 bits, allowed: 2048 to 8192",
    );
    check(
        with(rsa.clone(), "n", json!(base64([0xff; 1_025]))),
        "n: found 1025 bytes, allowed: 256 to 1024",
    );
    check(
        with(rsa.clone(), "e", json!("AA")),
        "n: found numbers that are no key",
    );
    check(
        with(rsa, "e", json!(base64([1; 5]))),
        "e: found 5 bytes, allowed: 1 to 4 bytes",
    );
    check(
        with(point.clone(), "y", json!(base64([1; 31]))),
        "y: found 31 bytes, allowed: 32 bytes for P-256",
    );
    check(
        with(point, "y", json!(base64([1; 32]))),
        "x: found numbers that are no key",
    );
    check(
        with(edwards, "x", json!(null)),
        "x: missing, allowed: 32 bytes",
    );
}

#[test]
fn a_private_key_is_an_error_and_not_shown() {
    let issuer = Issuer::p256();
    let secret = base64([7; 32]);
    let found = of_key(with(issuer.jwk("c"), "d", json!(secret)));
    assert!(
        found.contains("found a private key or a secret, allowed: public keys only"),
        "{found}"
    );
    assert!(!found.contains(&secret));
    let found = of_key(json!({ "kty": "oct", "k": secret }));
    assert!(found.contains("found a private key or a secret") && !found.contains(&secret));
}

#[test]
fn all_mistakes_are_reported_and_each_kid_is_unique() {
    let [one, other] = [Issuer::p256().jwk("same"), Issuer::p256().jwk("same")];
    let keys = json!({ "keys": [one, { "kty": "x" }, other] });
    assert_eq!(
        mistakes(&keys.to_string()),
        [
            "key 2: kty: found \"x\", allowed: \"RSA\", \"EC\" or \"OKP\"",
            "key 3 (kid \"same\"): kid: key 1 has the same, allowed: one that no other key has",
        ]
    );
}

#[test]
fn a_key_without_a_kid_verifies_tokens_without_one() {
    let issuer = Issuer::p256();
    let verifier = verifier(&[with(issuer.jwk("a"), "kid", json!(null))]);
    let unnamed = issuer.token_of(&json!({ "alg": "ES256" }), &claims("me"));
    assert_eq!(sub(&verifier, &unnamed), Ok("me".to_owned()));
    assert!(sub(&verifier, &issuer.token("a", &claims("me"))).is_err());
}
