//! Rendering of templates, and their mistakes with lines.

use anteroom_config::language::Language;
use anteroom_room::queue_position::QueueReason;
use anteroom_room::rules::QueueingMethod;

use super::*;
use crate::page::samples::{self, LINKS};

#[track_caller]
fn check(source: &str, reason: QueueReason, expected: &str) {
    let page = CustomPage::new(source).unwrap();
    let mut view = samples::view(reason);
    view.message = Some("<b>soon</b>");
    assert_eq!(page.page(&view, LINKS, false).into_text(), expected);
}

#[test]
fn variables_of_the_reference_have_the_values_of_the_json() {
    check(
        "{{#waitTimeKnown}}{{waitTime}} {{waitTimeFormatted}}{{/waitTimeKnown}}",
        QueueReason::Full,
        "14 14 minutes",
    );
    check(
        "{{waitTimeHours}}:{{waitTimeHourMinutes}} {{isFIFOQueue}} {{queueAll}}",
        QueueReason::Full,
        "0:14 true false",
    );
    check(
        "{{#isEventPrequeueing}}{{timeUntilEventStart}} \
         {{timeUntilEventStartHourMinutes}}{{/isEventPrequeueing}}",
        QueueReason::NotOpenYet {
            opens_at: samples::OPENING,
        },
        "19 19",
    );
    check("[{{{turnstile}}}]", QueueReason::Full, "[]");
}

#[test]
fn every_json_key_is_a_variable_and_every_name_has_a_value() {
    use crate::page::fields::Fields as _;
    use variables::Value;

    for reason in samples::REASONS {
        let mut view = samples::view(reason);
        view.message = Some("soon");
        let variables = Variables::new(&view, LINKS, false);
        let keys = serde_json::to_value(view.body().cf_waiting_room).unwrap();
        let serde_json::Value::Object(keys) = keys else {
            panic!("{keys}");
        };
        for (name, expected) in keys {
            assert!(variables::NAMES.contains(&&*name), "{name}");
            let found = match variables.field(&name).unwrap() {
                Value::Unknown | Value::UnknownNumber => serde_json::Value::Null,
                Value::Switch(is_on) => is_on.into(),
                Value::Number(number) => number.into(),
                Value::Text(text) => text.into(),
                other => panic!("{name}: {other:?} is no value of JSON"),
            };
            assert_eq!(found, expected, "{name}");
        }
        for name in variables::NAMES {
            assert!(variables.field(name).is_some(), "{name}");
        }
        assert!(variables.field("userId").is_none());
    }
}

#[test]
fn zero_unknown_and_empty_are_false_in_sections() {
    let refresh = "{{#refreshIntervalSeconds}}yes{{/refreshIntervalSeconds}}\
                   {{^refreshIntervalSeconds}}no{{/refreshIntervalSeconds}}";
    check(refresh, QueueReason::Full, "yes");
    check(refresh, QueueReason::Rejecting, "no");
    check("{{askAfterMs}}", QueueReason::Rejecting, "30000");
    check("{{^opensAt}}-{{/opensAt}}", QueueReason::Full, "-");
    check("{{#queueIsFull}}x{{/queueIsFull}}", QueueReason::Full, "");
}

#[test]
fn our_variables_are_in_the_visitors_language_and_escaped() {
    check(
        "{{heading}}|{{peopleAhead}}|{{position}}|{{admittedLastMinute}}|{{reason}}|{{message}}",
        QueueReason::Full,
        "You’re in line|412|413|38|full|&lt;b&gt;soon&lt;/b&gt;",
    );
    check(
        "{{opensAt}}",
        QueueReason::NotOpenYet {
            opens_at: samples::OPENING,
        },
        "2026-08-01T10:00:00Z",
    );
    let page = CustomPage::new("{{language}} {{direction}} {{heading}}").unwrap();
    let mut view = samples::view(QueueReason::Full);
    view.language = Language::Hebrew;
    assert_eq!(
        page.page(&view, LINKS, false).into_text(),
        "he rtl אתם בתור"
    );
}

#[test]
fn numbers_and_our_addresses_fit_into_a_script() {
    let source = "var known = {{waitTimeKnown}}, ms = {{askAfterMs}}, url = \"{{{positionUrl}}}\";";
    check(
        source,
        QueueReason::Full,
        "var known = true, ms = 12300, url = \"/.well-known/anteroom/position?room=shop&lang=en\";",
    );
}

#[test]
fn an_unknown_number_is_null_in_a_script_and_nothing_elsewhere() {
    let check = |source: &str, expected: &str| {
        let page = CustomPage::new(source).unwrap();
        let mut view = samples::view(QueueReason::Full);
        view.position.people_ahead = None;
        view.admitted_last_minute = None;
        assert_eq!(page.page(&view, LINKS, false).into_text(), expected);
    };
    check(
        "<p>{{position}}|{{{peopleAhead}}}</p><script>var a = {{position}}, \
         b = {{{ peopleAhead }}}, c = {{&admittedLastMinute}};</script><p>{{position}}</p>",
        "<p>|</p><script>var a = null, b = null, c = null;</script><p></p>",
    );
    check(
        "<SCRIPT type=\"application/json\">[{{peopleWaiting}}, {{#position}}1{{/position}}\
         {{^position}}{{position}}{{/position}}, \"{{opensAt}}\"]</SCRIPT>",
        "<SCRIPT type=\"application/json\">[1204, null, \"\"]</SCRIPT>",
    );
    assert_eq!(
        CustomPage::mistakes("{{position?}}").len(),
        1,
        "the mark is ours"
    );
}

#[test]
fn the_script_has_its_settings_a_reload_without_scripts_and_live_regions() {
    let page = CustomPage::new("<html>\n{{{anteroomScript}}}").unwrap();
    assert!(page.has_script());
    assert!(!CustomPage::new("<html>").unwrap().has_script());
    let view = samples::view(QueueReason::Full);
    let html = page.page(&view, LINKS, false).into_text();
    let refresh = "<noscript><meta http-equiv=\"refresh\" content=\"30\"></noscript>";
    for part in [
        refresh,
        "<p id=\"anteroom-shout\" role=\"alert\"",
        "data-prefix=\"anteroom-\"",
        "lang=\"en\"",
        "data-ask=\"12300\"",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    assert!(html.contains(&*crate::page::SCRIPT));
    let links = Links {
        entry: "/cart",
        ..LINKS
    };
    let html = page.page(&view, links, true).into_text();
    assert!(html.contains("content=\"60;url=/cart\""), "{html}");
    assert!(html.contains("data-entry=\"/cart\""), "{html}");
}

#[test]
fn no_text_ends_an_attribute_in_quotes_of_either_kind() {
    let page = CustomPage::new("<p title='{{message}}' lang=\"{{message}}\">").unwrap();
    let mut view = samples::view(QueueReason::Full);
    view.message = Some("'it' is \"on\" </p>&");
    let text = "&#39;it&#39; is &quot;on&quot; &lt;/p&gt;&amp;";
    let expected = format!("<p title='{text}' lang=\"{text}\">");
    assert_eq!(page.page(&view, LINKS, false).into_text(), expected);
}

#[test]
fn every_mistake_is_reported_with_its_line() {
    let check = |source: &str, expected: &[(usize, &str)]| {
        let found = CustomPage::mistakes(source);
        let lines: Vec<usize> = found.iter().map(|mistake| mistake.line).collect();
        let wanted: Vec<usize> = expected.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, wanted, "{source}: {found:?}");
        for (mistake, (_, part)) in found.iter().zip(expected) {
            assert!(mistake.message.contains(part), "{mistake:?} lacks {part}");
        }
    };
    check("<p>\n{{waitTime", &[(2, "}} is missing")]);
    check("{{#queueAll}}\n\n<p>", &[(1, "queueAll is not closed")]);
    check("a\nb{{/queueAll}}", &[(2, "not open")]);
    check(
        "{{#queueAll}}\n{{#waitTimeKnown}}\n{{/queueAll}}{{/waitTimeKnown}}",
        &[(
            3,
            "{{/waitTimeKnown}} is expected, for the section of line 2",
        )],
    );
    check(
        "\n{{waittime}} {{people_ahead}}\n{{userId}}",
        &[
            (2, "did you mean waitTime?"),
            (2, "did you mean peopleAhead?"),
            (3, "no variable \"userId\""),
        ],
    );
    check(
        "{{> head}}\n{{=<% %>=}}",
        &[(1, "include"), (2, "delimiters")],
    );
    check("{{! a\nremark }}{{nobody}}", &[(2, "nobody")]);
    check("plain { text } with }} in it", &[]);
    check(
        "{{anteroomScript}}\n{{#queueAll}}{{{anteroomScript}}}{{/queueAll}}\n\
         <script>{{{anteroomScript}}}</script>",
        &[
            (1, "three braces: {{{anteroomScript}}}"),
            (2, "cannot be in a section"),
            (3, "cannot be in a script"),
        ],
    );
    check(
        "{{{anteroomScript}}}\n{{&anteroomScript}}",
        &[(2, "a second time")],
    );
}

proptest::proptest! {
    #[test]
    fn any_template_has_mistakes_or_renders(
        source in "([{]{2,3}|[}]{2,3}|[#^/&!>=. a]|queueAll|position|</?script>|\\PC){0,24}",
    ) {
        match CustomPage::new(&source) {
            Ok(page) => drop(page.page(&samples::view(QueueReason::Full), LINKS, false)),
            Err(mistakes) => assert!(!mistakes.is_empty()),
        }
    }
}

#[test]
fn a_template_that_is_too_large_is_a_mistake() {
    assert!(CustomPage::new(&"x".repeat(BYTES_MAX)).is_ok());
    assert_eq!(CustomPage::mistakes(&"x".repeat(BYTES_MAX + 1)).len(), 1);
}

#[test]
fn a_template_without_mistakes_renders_in_every_state() {
    let names = variables::NAMES.iter();
    let source: String = names
        .filter(|name| **name != variables::SCRIPT)
        .map(|name| format!("{{{{#{name}}}}}{{{{{name}}}}}{{{{{{{name}}}}}}}{{{{/{name}}}}}"))
        .collect();
    let page = CustomPage::new(&format!("{source}{{{{{{anteroomScript}}}}}}")).unwrap();
    for reason in samples::REASONS {
        for method in [QueueingMethod::Fifo, QueueingMethod::Random] {
            let mut view = samples::view(reason);
            view.method = method;
            assert!(
                page.page(&view, LINKS, true)
                    .into_text()
                    .contains("/lamps?colour=red")
            );
        }
    }
}
