//! Tests of the OpenAPI document: it is the one in the docs, and handlers do what it says.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anteroom_admin::{Role, openapi_document};
use serde_json::Value;

use crate::control::bench::{Bench, token_of};

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Operation of the document.
struct Operation {
    method: String,
    path: String,
    /// Role that it needs.
    role: Role,
    /// Whether it needs no token at a loopback address.
    is_open: bool,
}

fn document() -> Value {
    serde_json::from_str(openapi_document()).unwrap()
}

fn operations() -> Vec<Operation> {
    let document = document();
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in METHODS {
            let Some(operation) = item.get(method) else {
                continue;
            };
            let schemes = operation["security"].as_array().unwrap();
            let roles = schemes
                .iter()
                .filter_map(|scheme| scheme["token"][0].as_str());
            let roles: Vec<&str> = roles.collect();
            let role = Role::ALL.into_iter().find(|role| roles == [role.word()]);
            found.push(Operation {
                method: method.to_uppercase(),
                path: path.clone(),
                role: role.unwrap_or_else(|| panic!("{method} {path}: {roles:?}")),
                is_open: schemes
                    .iter()
                    .any(|scheme| scheme == &serde_json::json!({})),
            });
        }
    }
    assert!(found.len() > 20, "{}", found.len());
    found
}

impl Operation {
    /// Sends a request about things that exist where that is possible.
    async fn send(&self, bench: &Bench, token: Option<&str>) -> u16 {
        let path = self
            .path
            .replace("{room}", "shop")
            .replace("{limit}", "api");
        let path = path.replace("{code}", "7K3M-9QXZ").replace("{event}", "x");
        let (body, length) = match &*self.method {
            "GET" | "DELETE" => ("", String::new()),
            _ => ("{}", "content-length: 2\r\n".to_owned()),
        };
        let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
        let token = token.unwrap_or_default();
        let method = &self.method;
        let head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{token}{length}\r\n");
        let response = bench.send(&(head + body)).await;
        // A forbidden change has the right role.
        match response.json()["error"].as_str() {
            Some("forbidden") => 200,
            _ => response.status,
        }
    }
}

#[test]
fn the_document_is_the_one_in_the_docs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/openapi.json");
    let text = format!("{}\n", openapi_document());
    if std::env::var_os("ANTEROOM_UPDATE").is_some() {
        fs::write(&docs, &text).unwrap();
    }
    let expected = fs::read_to_string(&docs).unwrap_or_default();
    assert!(
        text == expected,
        "clients are made from docs/reference/openapi.json; ANTEROOM_UPDATE=1 updates it"
    );
    assert_eq!(document()["openapi"], "3.1.0");
}

#[test]
fn every_operation_and_every_field_is_described() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(summary.len() > 10, "{method} {path}: {summary:?}");
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} twice");
        }
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let properties = schema["properties"].as_object();
        for (field, property) in properties.into_iter().flatten() {
            let own = &property["description"];
            let text = own
                .as_str()
                .or_else(|| property["oneOf"][0]["description"].as_str());
            let text = text.unwrap_or_default();
            assert!(text.len() > 3, "{name}.{field}");
        }
    }
}

#[tokio::test]
async fn each_operation_needs_the_role_that_the_document_says() {
    let bench = Bench::new().await;
    for operation in operations() {
        let about = format!("{} {}", operation.method, operation.path);
        let without = operation.send(&bench, None).await;
        assert_eq!(without == 401, !operation.is_open, "{about}: {without}");
        for role in Role::ALL {
            let status = operation.send(&bench, Some(&token_of(role))).await;
            let is_refused = status == 403;
            let expected = role < operation.role && !operation.is_open;
            assert_eq!(is_refused, expected, "{about} {role:?}: {status}");
            assert_ne!(status, 401, "{about} {role:?}");
        }
    }
    bench.stop().await;
}

#[tokio::test]
async fn the_document_is_served() {
    let bench = Bench::new().await;
    let response = bench.get("/openapi.json").await;
    assert_eq!((response.status, response.json()), (200, document()));
    bench.stop().await;
}
