//! Requests that rules let pass, and rules that are rejected.

use http::HeaderValue;

use super::*;

fn rule(expression: &str) -> BypassRule {
    BypassRule {
        expression: expression.to_owned(),
        line: 7,
    }
}

fn compile_one(expression: &str) -> BypassRules {
    BypassRules::compile(&[rule(expression)]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

fn allows(rules: &BypassRules, target: &str, headers: &[(&'static str, &'static str)]) -> bool {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_static(value));
    }
    let request = BypassRequest {
        method: &Method::POST,
        host: "Shop.Example:8080",
        address: "192.0.2.77".parse().unwrap(),
        query,
        headers: (&map).into(),
    };
    rules.allow(&Readings::of(path).unwrap(), &request)
}

#[track_caller]
fn check(expression: &str, target: &str, expected: bool) {
    let headers = [
        ("user-agent", "probe/1"),
        ("x-a", "1"),
        ("x-a", "2"),
        ("x-empty", ""),
    ];
    let rules = compile_one(expression);
    assert_eq!(
        allows(&rules, target, &headers),
        expected,
        "{expression} for {target}"
    );
    assert_eq!(rules.failures(), 0, "{expression}");
}

#[test]
fn every_variable_has_its_value() {
    check("path == '/a b'", "/a%20b", true);
    check("path.startsWith('/static/')", "/static/x", true);
    check("extension == 'css'", "/x/site.min.CSS", true);
    check("extension == ''", "/x.d/.css", true);
    check("extension in ['css', 'js']", "/x.js", true);
    check("query.contains('y=1')", "/?x=0&y=1", true);
    check("method == 'POST'", "/", true);
    check("host == 'shop.example'", "/", true);
    check("address == '192.0.2.77'", "/", true);
    check("headers['user-agent'].startsWith('probe/')", "/", true);
    check("headers['User-Agent'] == 'probe/1'", "/", true);
    check("headers['x-a'] == '1, 2'", "/", true);
    check("'x-empty' in headers && !('x-none' in headers)", "/", true);
    check("has(headers.cookie)", "/", false);
    check("size(path) < 5", "/", true);
    check("path == '/a' ? true : method == 'GET'", "/b", false);
}

#[test]
fn in_network_tests_an_address() {
    check("in_network(address, '192.0.2.0/24')", "/", true);
    check("in_network(address, '192.0.2.77')", "/", true);
    check(
        "in_network(address, '10.0.0.0/8') || in_network(address, '2001:db8::/32')",
        "/",
        false,
    );
}

#[test]
fn a_loop_over_a_list_in_the_rule_is_allowed() {
    let rule = "['/a/', '/b/'].exists(prefix, path.startsWith(prefix))";
    check(rule, "/b/x", true);
    check(rule, "/c/x", false);
}

#[test]
fn an_absent_header_is_no_failure() {
    check("headers['x-none'] == '1'", "/", false);
    check("headers['x-none'] == '1' || path == '/'", "/", true);
}

#[test]
fn one_true_rule_is_enough() {
    let rules = [rule("headers['x-none'] == '1'"), rule("path == '/a'")];
    let rules = BypassRules::compile(&rules).unwrap();
    assert!(allows(&rules, "/a", &[]));
    assert!(!allows(&rules, "/b", &[]));
    assert!(!allows(&BypassRules::compile(&[]).unwrap(), "/a", &[]));
}

#[test]
fn a_disguised_path_passes_only_if_it_does_in_every_reading() {
    let rule = "path.startsWith('/static/')";
    check(rule, "/%73tatic/x", true);
    check(rule, "/static/x;v=1", true);
    for target in [
        "/static/../shop",
        "/static/..%2fshop",
        "/static/..\\shop",
        "/static/..;/shop",
        "/shop/../static/x",
        "/shop/..%2fstatic/x",
        "/shop\\..\\static/x",
        "//static/x",
    ] {
        check(rule, target, false);
    }
    check("extension == 'css'", "/shop/x%2f..%2fy.css;a", false);
}

#[test]
fn a_rule_that_cannot_be_evaluated_is_false_and_counted() {
    let rules = compile_one("int(query) > 3");
    assert!(!allows(&rules, "/?many", &[]));
    assert!(!allows(&rules, "/?more", &[]));
    assert!(allows(&rules, "/?4", &[]));
    assert_eq!(rules.failures(), 2);
}

#[track_caller]
fn check_rejected(expression: &str, part_of_message: &str) {
    let errors = BypassRules::compile(&[rule(expression)]).expect_err(expression);
    let has_part = errors
        .iter()
        .any(|error| error.message.contains(part_of_message));
    assert!(has_part, "{expression}: {errors:?}");
    assert_eq!(
        (errors[0].line, errors[0].expression.as_str()),
        (7, expression)
    );
}

#[test]
fn mistakes_are_found_when_the_rule_is_read() {
    check_rejected("", "");
    check_rejected("path ==", "column");
    check_rejected("path", "must be true or false");
    check_rejected("size(path)", "a number");
    check_rejected("'yes'", "must be true or false");
    check_rejected("path == '/a' && pth == '/b'", "unknown variable `pth`");
    check_rejected(
        "false && request.path == '/a'",
        "unknown variable `request`",
    );
    check_rejected("path == 1", "compared");
    check_rejected("path && true", "each side");
    check_rejected("path.beginsWith('/a')", "no function `beginsWith`");
    check_rejected("path.matches('^/a')", "no function `matches`");
    check_rejected("path.startsWith(1)", "the argument of `startsWith`");
    check_rejected("path.x == 'a'", "no field `x`");
    check_rejected("path[0] == 'a'", "cannot be indexed");
    check_rejected("'a' in path", "after `in`");
    check_rejected("in_network(address, '10.0.0.0/33')", "is no network");
    check_rejected("in_network(address)", "no function `in_network`");
    check_rejected("dyn(1)", "must give true or false");
    check_rejected("Rule{a: 1} == 1", "unknown type");
}

#[test]
fn loops_that_a_client_could_make_long_are_rejected() {
    check_rejected("headers.exists(name, name == 'x')", "loops run over a list");
    check_rejected("[1, 2].all(a, [1, 2].all(b, a == b))", "inside another");
}

#[test]
fn every_mistake_of_every_rule_is_reported() {
    let errors = BypassRules::compile(&[rule("a == b"), rule("true"), rule("path")]).unwrap_err();
    assert_eq!(errors.len(), 3, "{errors:?}");
}

#[test]
fn a_rule_that_lets_all_visitors_pass_gets_a_warning() {
    let check = |expression: &str, expected: Option<&str>| {
        let rule = BypassRule {
            expression: expression.to_owned(),
            line: 1,
        };
        let remark = BypassRules::remark(&rule);
        assert_eq!(
            remark.is_some(),
            expected.is_some(),
            "{expression}: {remark:?}"
        );
        let (remark, expected) = (remark.unwrap_or_default(), expected.unwrap_or_default());
        assert!(remark.contains(expected), "{expression}: {remark}");
    };
    check("true", Some("nobody ever waits"));
    check("path.startsWith(\"/\")", Some("nobody ever waits"));
    check(
        "method == \"GET\" || path == \"/hook\"",
        Some("nobody ever waits"),
    );
    check("!path.startsWith(\"/a\")", Some("nobody waits there"));
    check("extension == \"\"", Some("nobody waits there"));
    check("path.startsWith(\"/webhooks/\")", None);
    check("headers[\"x-monitor\"] == \"yes\"", None);
    check("in_network(address, \"10.0.0.0/8\")", None);
    // A mistake, which is reported elsewhere.
    check("tru", None);
}

#[test]
fn a_rule_of_any_shape_is_checked_on_a_small_stack() {
    let deep = |open: &str, inner: &str, close: &str, count: usize| {
        format!("{}{inner}{}", open.repeat(count), close.repeat(count))
    };
    let refused = [
        deep("(", "true", ")", 2_000),
        deep("(", "", "", 4_096),
        deep("[", "1", "]", 2_000),
        deep("{1:", "1", "}", 1_000),
        format!("{}\"a\" == \"a\"", "\"a\"+".repeat(1_000)),
        format!("{}1 == 1", "1+".repeat(2_000)),
        format!("path{} == path", ".a".repeat(2_000)),
    ];
    for expression in refused {
        let rule = BypassRule {
            expression,
            line: 0,
        };
        let (start, _) = rule.expression.split_at(4);
        assert!(!BypassRules::check(&rule).is_empty(), "{start}...");
    }
    // The deepest rules that are allowed are evaluated on the stack of a worker.
    for expression in [
        deep("(", "true", ")", 32),
        format!("{}\"a\" != path", "\"a\"+".repeat(25)),
        format!("{}true", "path == \"/x\" || ".repeat(200)),
        format!("{}true", "true && ".repeat(400)),
    ] {
        check(&expression, "/", true);
    }
}
