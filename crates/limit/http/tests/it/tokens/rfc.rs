//! Examples of the RFCs, signed by others. They find mistakes that signer and verifier here could
//! share.

use anteroom_limit_http::jwt::{Expected, KeySet, Rejection, Verifier};
use serde_json::{Value, json};

/// Time before the example expires (RFC 7515, A.2.1: `exp` is 1300819380).
const THEN: u64 = 1_300_819_379;

/// Claims of both examples, encoded.
const CLAIMS: &str = "\
    eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19y\
    b290Ijp0cnVlfQ";

fn check(key: Value, token: &str) {
    let keys = KeySet::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap();
    let names = vec!["iss".to_owned(), "http://example.com/is_root".to_owned()];
    let verifier = Verifier::new(keys, Expected::default(), names);
    let proof = verifier.verify(token.as_bytes(), THEN).unwrap();
    assert_eq!(verifier.claim(&proof, "iss"), Some("joe"));
    assert_eq!(
        verifier.claim(&proof, "http://example.com/is_root"),
        Some("true")
    );
    let late = verifier.verify(token.as_bytes(), THEN + 1);
    assert_eq!(late, Err(Rejection::Expired));
}

#[test]
fn rfc_7515_a_2_by_rsa() {
    let modulus = "\
        ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJ\
        PMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0\
        LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uD\
        Zlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2\
        PAcDTW9gb54h4FRWyuXpoQ";
    let signature = "\
        cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF\
        5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK\
        5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqt\
        FZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrB\
        p0igcN_IoypGlUPQGe77Rw";
    let key = json!({ "kty": "RSA", "n": modulus, "e": "AQAB" });
    check(key, &format!("eyJhbGciOiJSUzI1NiJ9.{CLAIMS}.{signature}"));
}

#[test]
fn rfc_7515_a_3_by_a_curve() {
    let key = json!({
        "kty": "EC",
        "crv": "P-256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
        "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    });
    let signature =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    check(key, &format!("eyJhbGciOiJFUzI1NiJ9.{CLAIMS}.{signature}"));
}

#[test]
fn rfc_8037_a_4_by_edwards() {
    let key = json!({
        "kty": "OKP",
        "crv": "Ed25519",
        "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    });
    let keys = KeySet::parse(json!({ "keys": [key] }).to_string().as_bytes()).unwrap();
    let verifier = Verifier::new(keys, Expected::default(), Vec::new());
    let token = "\
        eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.hgyY0il_MGCjP0JzlnLWG1P\
        POt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    // The signature is right, but the payload is a sentence and not JSON.
    assert_eq!(
        verifier.verify(token.as_bytes(), THEN),
        Err(Rejection::Malformed)
    );
    let other = token.replace("hgyY", "hgyZ");
    assert_eq!(
        verifier.verify(other.as_bytes(), THEN),
        Err(Rejection::Signature)
    );
}
