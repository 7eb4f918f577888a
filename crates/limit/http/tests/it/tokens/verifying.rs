//! Tokens that prove something, and the reasons why others do not.

use anteroom_limit_http::jwt::{Algorithm, Rejection, TOKEN_BYTES_MAX};
use serde_json::{Value, json};

use crate::tokens::issuer::{Issuer, NOW, base64, claims, expecting, sub, verifier};

#[test]
fn each_algorithm_proves_what_its_key_has_signed() {
    let [first, second] = [Issuer::all(), Issuer::all()];
    for (issuer, stranger) in first.iter().zip(&second) {
        let verifier = verifier(&[issuer.jwk("a")]);
        for algorithm in issuer.algorithms() {
            let header = json!({ "alg": algorithm.name(), "kid": "a" });
            let token = issuer.token_of(&header, &claims("me"));
            assert_eq!(sub(&verifier, &token), Ok("me".to_owned()), "{algorithm:?}");
            let forged = stranger.token_of(&header, &claims("me"));
            assert_eq!(
                sub(&verifier, &forged),
                Err(Rejection::Signature),
                "{algorithm:?}"
            );
        }
    }
}

#[test]
fn a_key_is_used_only_with_its_own_algorithms() {
    for issuer in Issuer::all() {
        let verifier = verifier(&[issuer.jwk("a")]);
        for algorithm in Algorithm::ALL {
            if issuer.algorithms().contains(&algorithm) {
                continue;
            }
            // Signed with the right key, but with another algorithm in its header.
            let header = json!({ "alg": algorithm.name(), "kid": "a" });
            let token = issuer.token_of(&header, &claims("me"));
            assert_eq!(
                sub(&verifier, &token),
                Err(Rejection::NoKey),
                "{algorithm:?}"
            );
        }
    }
    let issuer = Issuer::rsa();
    let mut only = issuer.jwk("a");
    only["alg"] = json!("PS256");
    let verifier = verifier(&[only]);
    let by = |algorithm: &str| {
        let header = json!({ "alg": algorithm, "kid": "a" });
        sub(&verifier, &issuer.token_of(&header, &claims("me")))
    };
    assert_eq!(by("PS256"), Ok("me".to_owned()));
    assert_eq!(
        by("RS256"),
        Err(Rejection::NoKey),
        "the key has its own `alg`"
    );
}

#[test]
fn no_signature_and_no_public_key_as_a_secret_is_accepted() {
    let issuer = Issuer::rsa();
    let jwk = issuer.jwk("a");
    let verifier = verifier(std::slice::from_ref(&jwk));
    for algorithm in [
        "none", "None", "nOnE", "", "HS256", "HS384", "HS512", "rs256", "RS1", "ES512",
    ] {
        let header = base64(json!({ "alg": algorithm, "kid": "a" }).to_string());
        let signed = format!("{header}.{}", base64(claims("me").to_string()));
        let key = aws_lc_rs::hmac::Key::new(
            aws_lc_rs::hmac::HMAC_SHA256,
            jwk["n"].as_str().unwrap().as_bytes(),
        );
        let tag = aws_lc_rs::hmac::sign(&key, signed.as_bytes());
        for signature in [String::new(), base64(tag)] {
            let token = format!("{signed}.{signature}");
            assert_eq!(
                sub(&verifier, &token),
                Err(Rejection::Algorithm),
                "{algorithm}"
            );
        }
    }
    // A header without `alg`, and one with two.
    for header in [
        json!({ "kid": "a" }).to_string(),
        r#"{"alg":"RS256","alg":"none"}"#.to_owned(),
    ] {
        let token = format!("{}.{}.", base64(header), base64(claims("me").to_string()));
        assert_eq!(sub(&verifier, &token), Err(Rejection::Malformed));
    }
}

#[test]
fn times_have_leeway_and_an_end_is_required() {
    let issuer = Issuer::p256();
    let verifier = verifier(&[issuer.jwk("a")]);
    let check = |times: Value, expected: Result<(), Rejection>| {
        let mut claims = times.clone();
        claims["sub"] = json!("me");
        let found = sub(&verifier, &issuer.token("a", &claims)).map(|_| ());
        assert_eq!(found, expected, "{times}");
    };
    check(json!({ "exp": NOW + 1 }), Ok(()));
    check(json!({ "exp": NOW - 29 }), Ok(()));
    check(json!({ "exp": NOW - 30 }), Err(Rejection::Expired));
    check(json!({ "exp": 0 }), Err(Rejection::Expired));
    check(json!({ "exp": NOW as f64 + 0.5 }), Ok(()));
    check(json!({ "exp": u64::MAX }), Ok(()));
    check(json!({ "exp": NOW + 9, "nbf": NOW + 30 }), Ok(()));
    check(
        json!({ "exp": NOW + 99, "nbf": NOW + 31 }),
        Err(Rejection::NotYet),
    );
    check(json!({ "exp": NOW + 9, "nbf": 0, "iat": "never" }), Ok(()));
    for times in [
        json!({}),
        json!({ "exp": null }),
        json!({ "exp": "1900000600" }),
        json!({ "exp": -1 }),
        json!({ "exp": 1e300 }),
        json!({ "exp": [NOW + 1] }),
        json!({ "exp": NOW + 1, "nbf": "now" }),
        json!({ "exp": NOW + 1, "nbf": -5 }),
    ] {
        check(times, Err(Rejection::Times));
    }
}

#[test]
fn a_cached_token_expires_at_its_end() {
    let issuer = Issuer::ed25519();
    let verifier = verifier(&[issuer.jwk("a")]);
    let token = issuer.token("a", &json!({ "sub": "me", "nbf": NOW, "exp": NOW + 10 }));
    let at = |now: u64| verifier.verify(token.as_bytes(), now).map(|_| ());
    assert_eq!(at(NOW - 31), Err(Rejection::NotYet));
    assert_eq!(at(NOW), Ok(()));
    assert_eq!(at(NOW + 39), Ok(()));
    assert_eq!(at(NOW + 40), Err(Rejection::Expired));
    // A wall clock may be set back.
    assert_eq!(at(NOW - 31), Err(Rejection::NotYet));
    assert_eq!(at(NOW + 1), Ok(()));
}

#[test]
fn the_named_key_or_the_only_fitting_one_verifies() {
    let [one, other, curve] = [Issuer::rsa(), Issuer::rsa(), Issuer::p256()];
    let both = verifier(&[one.jwk("one"), other.jwk("other"), curve.jwk("curve")]);
    assert_eq!(
        sub(&both, &one.token("one", &claims("me"))),
        Ok("me".to_owned())
    );
    let check = |token: String, expected: Rejection| assert_eq!(sub(&both, &token), Err(expected));
    check(one.token("other", &claims("me")), Rejection::Signature);
    check(one.token("third", &claims("me")), Rejection::NoKey);
    check(one.token("", &claims("me")), Rejection::NoKey);
    let unnamed = |issuer: &Issuer, algorithm: &str| {
        issuer.token_of(&json!({ "alg": algorithm }), &claims("me"))
    };
    check(unnamed(&one, "RS256"), Rejection::NoKey);
    assert_eq!(sub(&both, &unnamed(&curve, "ES256")), Ok("me".to_owned()));
    let header = json!({ "alg": "RS256", "kid": 7 });
    check(one.token_of(&header, &claims("me")), Rejection::Malformed);
}

#[test]
fn issuer_and_audience_must_be_those_that_are_expected() {
    let issuer = Issuer::p384();
    let keys = [issuer.jwk("a")];
    let verifier = expecting(&keys, Some("https://id.example"), Some("shop"));
    let check = |more: Value, expected: Result<(), Rejection>| {
        let mut claims = claims("me");
        claims
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let found = sub(&verifier, &issuer.token("a", &claims)).map(|_| ());
        assert_eq!(found, expected, "{more}");
    };
    let good = "https://id.example";
    check(json!({ "iss": good, "aud": "shop" }), Ok(()));
    check(json!({ "iss": good, "aud": ["bank", "shop"] }), Ok(()));
    check(json!({ "aud": "shop" }), Err(Rejection::Issuer));
    check(
        json!({ "iss": [good], "aud": "shop" }),
        Err(Rejection::Issuer),
    );
    check(
        json!({ "iss": "https://id.example/", "aud": "shop" }),
        Err(Rejection::Issuer),
    );
    check(json!({ "iss": good }), Err(Rejection::Audience));
    check(
        json!({ "iss": good, "aud": ["bank"] }),
        Err(Rejection::Audience),
    );
    check(
        json!({ "iss": good, "aud": "shops" }),
        Err(Rejection::Audience),
    );
    check(
        json!({ "iss": good, "aud": { "shop": 1 } }),
        Err(Rejection::Audience),
    );
}

#[test]
fn any_changed_byte_invalidates_a_token() {
    let issuer = Issuer::p256();
    let verifier = verifier(&[issuer.jwk("a")]);
    let token = issuer.token("a", &claims("me"));
    for at in 0..token.len() {
        let mut bytes = token.clone().into_bytes();
        // The next letter could differ in spare bits only.
        bytes[at] = if bytes[at] == b'A' { b'Q' } else { b'A' };
        assert!(verifier.verify(&bytes, NOW).is_err(), "byte {at}");
        assert!(
            verifier.verify(&token.as_bytes()[..at], NOW).is_err(),
            "cut at {at}"
        );
    }
    for strange in [
        format!("{token}."),
        format!("{token} "),
        format!(" {token}"),
        format!("{token}.{token}"),
        token.replacen('.', "..", 1),
        String::new(),
        "..".to_owned(),
    ] {
        assert!(sub(&verifier, &strange).is_err(), "{strange}");
    }
    assert_eq!(sub(&verifier, &token), Ok("me".to_owned()));
}

#[test]
fn critical_extensions_are_rejected() {
    let issuer = Issuer::ed25519();
    let verifier = verifier(&[issuer.jwk("a")]);
    for header in [
        json!({ "alg": "EdDSA", "kid": "a", "crit": ["exp"] }),
        json!({ "alg": "EdDSA", "kid": "a", "b64": false }),
    ] {
        let token = issuer.token_of(&header, &claims("me"));
        assert_eq!(sub(&verifier, &token), Err(Rejection::Critical));
    }
    for claims in [json!([]), json!("me"), json!(7)] {
        let token = issuer.token("a", &claims);
        assert_eq!(sub(&verifier, &token), Err(Rejection::Malformed));
    }
}

#[test]
fn a_too_long_token_is_not_parsed() {
    let issuer = Issuer::ed25519();
    let verifier = verifier(&[issuer.jwk("a")]);
    let padded = |length: usize| {
        let mut claims = claims("me");
        claims["padding"] = json!("x".repeat(length));
        issuer.token("a", &claims)
    };
    let longest = (5_000..7_000)
        .map(padded)
        .take_while(|token| token.len() <= TOKEN_BYTES_MAX)
        .last();
    assert_eq!(sub(&verifier, &longest.unwrap()), Ok("me".to_owned()));
    assert_eq!(sub(&verifier, &padded(6_500)), Err(Rejection::TooLong));
    assert_eq!(
        sub(&verifier, &"a.b.c".repeat(1_000_000)),
        Err(Rejection::TooLong)
    );
}

#[test]
fn claims_are_texts_numbers_or_switches_and_nothing_else() {
    let issuer = Issuer::p256();
    let verifier = verifier(&[issuer.jwk("a")]);
    let claim = |value: Value| {
        let claims = json!({ "tenant": value, "exp": NOW + 1 });
        let token = issuer.token("a", &claims);
        let proof = verifier.verify(token.as_bytes(), NOW).unwrap();
        assert_eq!(verifier.claim(&proof, "sub"), None);
        assert_eq!(verifier.claim(&proof, "unknown"), None);
        assert!(!format!("{proof:?}").contains("acme"));
        verifier.claim(&proof, "tenant").map(str::to_owned)
    };
    assert_eq!(claim(json!("acme")).as_deref(), Some("acme"));
    assert_eq!(claim(json!(-7)).as_deref(), Some("-7"));
    assert_eq!(claim(json!(1.5)).as_deref(), Some("1.5"));
    assert_eq!(claim(json!(true)).as_deref(), Some("true"));
    assert_eq!(claim(json!("")).as_deref(), Some(""));
    for value in [json!(null), json!(["acme"]), json!({ "a": "acme" })] {
        assert_eq!(claim(value), None);
    }
}
