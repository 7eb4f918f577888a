//! Cases of the reference service's own tests: which limit matches, and the names of its metrics.

use anteroom_envoy::config::{
    Applies, Entry, File, RateLimits, Request, RequestDescriptor, SameDomain, Value, read,
};

fn limits(text: &str) -> RateLimits {
    let file = File {
        name: "a.yaml",
        bytes: text.as_bytes(),
    };
    let read = read(&[file], SameDomain::Refused);
    read.unwrap_or_else(|mistakes| panic!("{mistakes}")).limits
}

/// Formats what applies to a descriptor of the entries `key=value`: `20/MINUTE` with its mode, and
/// the name of its metrics.
fn applies(limits: &RateLimits, entries: &str) -> String {
    let entries: Vec<Entry<'_>> = entries
        .split_whitespace()
        .map(|entry| entry.split_once('=').expect("it is key=value"))
        .map(|(key, value)| Entry { key, value })
        .collect();
    let descriptor = RequestDescriptor {
        entries: &entries,
        limit: None,
        hits: None,
    };
    let request = Request {
        domain: "d",
        descriptors: &[descriptor],
        hits_addend: 0,
    };
    let matched = limits.applying_to(&request).expect("it is within bounds");
    match &matched.descriptors[0] {
        Applies::Nothing => "nothing".to_owned(),
        Applies::Unlimited => "unlimited".to_owned(),
        Applies::Limit(limit) => {
            let mode = if limit.is_shadow { " shadow" } else { "" };
            let (requests, unit) = (limit.requests_per_unit, limit.unit.name());
            format!("{requests}/{unit}{mode} {}", limit.metric)
        }
    }
}

fn check(limits: &RateLimits, expected: &[(&str, &str)]) {
    for (entries, expected) in expected {
        assert_eq!(applies(limits, entries), *expected, "{entries}");
    }
}

const BASIC: &str = "
domain: d
descriptors:
  - key: key1
    value: value1
    descriptors:
      - {key: subkey1, rate_limit: {unit: second, requests_per_unit: 5}}
      - {key: subkey1, value: subvalue1, rate_limit: {unit: second, requests_per_unit: 10}}
  - {key: key2, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: key2, value: value2, rate_limit: {unit: minute, requests_per_unit: 30}}
  - {key: key2, value: value3}
  - {key: key3, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: key4, rate_limit: {name: key4_rate_limit, unit: day, requests_per_unit: 1}}
  - key: key5
    value: value5
    rate_limit: {unit: day, requests_per_unit: 15}
    descriptors:
      - {key: subkey5, value: subvalue5, rate_limit: {unit: day, requests_per_unit: 25}}
  - {key: key6, rate_limit: {unlimited: true}}
  - {key: key7, detailed_metric: true, rate_limit: {unit: minute, requests_per_unit: 70}}
";

#[test]
fn limits_match_like_the_reference() {
    check(
        &limits(BASIC),
        &[
            ("", "nothing"),
            ("key1=something", "nothing"),
            ("key1=value1", "nothing"),
            ("key2=value2 subkey=subvalue", "nothing"),
            ("key5=value5 subkey5=subvalue", "nothing"),
            (
                "key1=value1 subkey1=something",
                "5/SECOND d.key1_value1.subkey1",
            ),
            (
                "key1=value1 subkey1=subvalue1",
                "10/SECOND d.key1_value1.subkey1_subvalue1",
            ),
            ("key2=something", "20/MINUTE d.key2"),
            ("key2=other", "20/MINUTE d.key2"),
            ("key2=value2", "30/MINUTE d.key2_value2"),
            ("key2=value3", "nothing"),
            ("key3=foo", "1/HOUR d.key3"),
            ("key4=foo", "1/DAY d.key4"),
            ("key5=value5", "15/DAY d.key5_value5"),
            (
                "key5=value5 subkey5=subvalue5",
                "25/DAY d.key5_value5.subkey5_subvalue5",
            ),
            ("key6=foo", "unlimited"),
            ("key7=a", "70/MINUTE d.key7_a"),
            ("key7=b", "70/MINUTE d.key7_b"),
            // A quirk of the reference's metric names.
            ("key7=", "70/MINUTE d.key7_"),
        ],
    );
}

#[test]
fn wildcards_match_like_the_reference() {
    let text = "
domain: d
descriptors:
  - {key: wild, value: foo*, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: noWild, value: foo, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: noVal, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: midWild, value: bar*b, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: multiWild, value: foo*bar*baz, rate_limit: {unit: minute, requests_per_unit: 10}}
  - key: nestedWild
    value: val1
    descriptors:
      - {key: wild, value: goo*, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: valued, value: foo*bar*, value_to_metric: true,
     rate_limit: {unit: minute, requests_per_unit: 1}}
";
    check(
        &limits(text),
        &[
            ("noVal=foo1", "20/MINUTE d.noVal"),
            ("wild=foo1", "20/MINUTE d.wild_foo*"),
            ("wild=foo2", "20/MINUTE d.wild_foo*"),
            ("wild=bar", "nothing"),
            ("noWild=foo", "20/MINUTE d.noWild_foo"),
            ("noWild=foo1", "nothing"),
            (
                "nestedWild=val1 wild=goo2",
                "20/MINUTE d.nestedWild_val1.wild_goo*",
            ),
            ("midWild=barab", "20/MINUTE d.midWild_bar*b"),
            ("midWild=bar123b", "20/MINUTE d.midWild_bar*b"),
            ("midWild=barb", "20/MINUTE d.midWild_bar*b"),
            ("midWild=bara", "nothing"),
            ("midWild=xbarb", "nothing"),
            (
                "multiWild=foo123bar456baz",
                "10/MINUTE d.multiWild_foo*bar*baz",
            ),
            ("multiWild=foobarbaz", "10/MINUTE d.multiWild_foo*bar*baz"),
            ("multiWild=foo123baz", "nothing"),
            ("multiWild=bar456baz", "nothing"),
            ("valued=foo1bar2", "1/MINUTE d.valued_foo1bar2"),
        ],
    );
}

#[test]
fn shared_thresholds_are_named_by_their_pattern() {
    let limit = "rate_limit: {unit: minute, requests_per_unit: 9}";
    let text = format!(
        "
domain: d
descriptors:
  - {{key: files, value: files/*, share_threshold: true, {limit}}}
  - key: route
    value: api/*
    share_threshold: true
    value_to_metric: true
    descriptors: [{{key: method, {limit}}}]
  - key: service
    value: svc/*
    share_threshold: true
    descriptors: [{{key: endpoint, detailed_metric: true, {limit}}}]
  - key: path
    value: path/*
    share_threshold: true
    descriptors:
      - {{key: file, value: file/*, descriptors: [{{key: type, {limit}}}]}}
  - {{key: file, value: test1, {limit}}}
  - {{key: file, value: test*, share_threshold: true, {limit}}}
  - key: tenant
    value: t*prod
    share_threshold: true
    descriptors: [{{key: resource, value: res*v2, share_threshold: true, {limit}}}]
"
    );
    check(
        &limits(&text),
        &[
            ("files=files/a.pdf", "9/MINUTE d.files_files/*"),
            ("route=api/v1 method=GET", "9/MINUTE d.route_api/*.method"),
            (
                "service=svc/user endpoint=get",
                "9/MINUTE d.service_svc/*.endpoint_get",
            ),
            (
                "service=svc/user endpoint=",
                "9/MINUTE d.service_svc/*.endpoint",
            ),
            (
                "path=path/foo file=file/doc1 type=pdf",
                "9/MINUTE d.path_path/*.file_file/*.type",
            ),
            ("file=test1", "9/MINUTE d.file_test1"),
            ("file=test2", "9/MINUTE d.file_test*"),
            (
                "tenant=t1prod resource=resAv2",
                "9/MINUTE d.tenant_t*prod.resource_res*v2",
            ),
        ],
    );
}

#[test]
fn metric_names_have_values_where_the_file_asks_for_them() {
    let limit = "rate_limit: {unit: minute, requests_per_unit: 60}";
    let named = |leaf: &str| {
        limits(&format!(
            "
domain: d
descriptors:
  - key: route
    value_to_metric: true
    descriptors:
      - key: http_method
        value_to_metric: true
        descriptors: [{{key: subject_id, {leaf} {limit}}}]
      - {{key: plain, descriptors: [{{key: subject_id, {limit}}}]}}
"
        ))
    };
    check(
        &named(""),
        &[
            (
                "route=draw http_method=GET subject_id=123",
                "60/MINUTE d.route_draw.http_method_GET.subject_id",
            ),
            (
                "route=draw plain=x subject_id=1",
                "60/MINUTE d.route_draw.plain.subject_id",
            ),
            (
                "route= http_method=GET subject_id=1",
                "60/MINUTE d.route.http_method_GET.subject_id",
            ),
            (
                "route= http_method= subject_id=1",
                "60/MINUTE d.route.http_method.subject_id",
            ),
        ],
    );
    check(
        &named("detailed_metric: true,"),
        &[(
            "route=draw http_method=GET subject_id=123",
            "60/MINUTE d.route_draw.http_method_GET.subject_id_123",
        )],
    );
}

#[test]
fn shadow_mode_applies_to_its_descriptor_only() {
    let text = "
domain: d
descriptors:
  - {key: key2, shadow_mode: true, rate_limit: {unit: minute, requests_per_unit: 20}}
  - {key: key2, value: value2, rate_limit: {unit: minute, requests_per_unit: 30}}
";
    check(
        &limits(text),
        &[
            ("key2=something", "20/MINUTE shadow d.key2"),
            ("key2=value2", "30/MINUTE d.key2_value2"),
        ],
    );
}

#[test]
fn metadata_comes_with_its_limit_whatever_its_metric_names() {
    let text = "
domain: d
descriptors:
  - key: plain
    rate_limit: {unit: minute, requests_per_unit: 20}
    metadata: {service: {name: one, list: [1, 2.5, ~, true]}, 7: x}
  - key: detailed
    detailed_metric: true
    value_to_metric: true
    rate_limit: {unit: minute, requests_per_unit: 20}
    metadata: {name: two}
";
    let limits = limits(text);
    let metadata = |key| {
        let entries = [Entry { key, value: "v" }];
        let descriptor = RequestDescriptor {
            entries: &entries,
            limit: None,
            hits: None,
        };
        let request = Request {
            domain: "d",
            descriptors: &[descriptor],
            hits_addend: 0,
        };
        let matched = limits.applying_to(&request).unwrap();
        match &matched.descriptors[0] {
            Applies::Limit(limit) => limit.metadata.unwrap().clone(),
            other => panic!("{other:?}"),
        }
    };
    let text = |text: &str| Value::Text(text.to_owned());
    assert_eq!(metadata("detailed").get("name"), Some(&text("two")));
    let plain = metadata("plain");
    assert_eq!(plain.get("7"), Some(&text("x")));
    let Some(Value::Map(service)) = plain.get("service") else {
        panic!("no map: {plain:?}");
    };
    assert_eq!(service.get("name"), Some(&text("one")));
    let list = [
        Value::Number(1.0),
        Value::Number(2.5),
        Value::Null,
        Value::Bool(true),
    ];
    assert_eq!(service.get("list"), Some(&Value::List(list.to_vec())));
}
