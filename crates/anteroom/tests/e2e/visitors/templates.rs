//! Pages of the operator: served, reloaded, and rejected with their lines.

use crate::support::command::run;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::eventually;
use crate::support::site::Site;

#[tokio::test]
async fn an_operators_page_gets_its_variables_and_a_refresh_header() {
    let template = "<title>{{heading}}</title>{{^queueAll}}{{peopleAhead}} ahead{{/queueAll}} \
                    {{reason}} {{waitTimeKnown}} {{room}}";
    let more = format!("custom_page_html = '{template}'\nqueueing_status_code = 202");
    let site = Site::with_room(1, &more).await;
    let _inside = site.insider().await;
    let response = site.visitor().navigate("/").await;
    assert_eq!(response.status, 202);
    assert_eq!(
        response.text(),
        "<title>You’re in line</title>0 ahead full true main"
    );
    assert_eq!(response.headers["refresh"], "30");
    assert!(!response.headers.contains_key("content-security-policy"));
    assert_eq!(response.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn every_mistake_in_a_template_is_reported_with_file_line_and_key() {
    let origin = "127.0.0.1:9".parse().unwrap();
    let check = async |more: &str, page: Option<&str>| {
        let config = ConfigFile::new(&(SERVER.to_owned() + &room("shop", origin, 1, more)));
        if let Some(page) = page {
            std::fs::write(config.path().with_file_name("page.html"), page).unwrap();
        }
        let path = config.path().display().to_string();
        let ended = run(&["check", "--config", &path]).await;
        let folder = config.path().parent().unwrap().display().to_string() + "/";
        (ended.code, ended.err.replace(&folder, ""))
    };
    let (code, messages) = check("custom_page_html = '''\n<p>\n{{waittime}}'''", None).await;
    assert_eq!(code, Some(2), "{messages}");
    let expected = "error: anteroom.toml:10: room \"shop\": custom_page_html: line 2 of the \
                    template: \
                    there is no variable \"waittime\"; did you mean waitTime?";
    assert!(messages.contains(expected), "{messages}");

    let file = "custom_page_file = \"page.html\"";
    let (code, messages) = check(file, Some("<p>\n{{#queueAll}}\n{{oops}}")).await;
    assert_eq!(code, Some(2), "{messages}");
    for expected in [
        "error: page.html:2: room \"shop\": custom_page_file: the section queueAll is not closed",
        "error: page.html:3: room \"shop\": custom_page_file: there is no variable \"oops\"",
    ] {
        assert!(messages.contains(expected), "{messages}");
    }
    let (code, messages) = check(file, None).await;
    assert_eq!(code, Some(2), "{messages}");
    let expected =
        "error: anteroom.toml:10: room \"shop\": custom_page_file: cannot read page.html";
    assert!(messages.contains(expected), "{messages}");
    let (code, messages) = check(file, Some(&"x".repeat(1_048_577))).await;
    assert_eq!(code, Some(2), "{messages}");
    assert!(
        messages.contains("cannot read page.html: it is too large"),
        "{messages}"
    );
    let (code, messages) = check(file, Some("<p>{{heading}}")).await;
    assert_eq!(code, Some(0), "{messages}");
    // Mistakes that only the gateway finds are reported with those of the page, each once.
    let both = format!("{file}\npath = \"/a%c0%af\"");
    let (code, messages) = check(&both, Some("{{oops}}")).await;
    assert_eq!(code, Some(2), "{messages}");
    assert!(
        messages.contains("error: page.html:1: room \"shop\""),
        "{messages}"
    );
    assert!(
        messages.contains("error: anteroom.toml: a room's path never matches a request"),
        "{messages}"
    );
    assert!(messages.contains("2 mistakes"), "{messages}");
}

#[tokio::test]
async fn odd_html_is_a_warning_with_file_line_and_states() {
    let check = async |more: &str, page: &str| {
        let origin = "127.0.0.1:9".parse().unwrap();
        let config = ConfigFile::new(&(SERVER.to_owned() + &room("shop", origin, 1, more)));
        std::fs::write(config.path().with_file_name("page.html"), page).unwrap();
        let path = config.path().display().to_string();
        let ended = run(&["check", "--config", &path]).await;
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let folder = config.path().parent().unwrap().display().to_string() + "/";
        ended.out.replace(&folder, "")
    };
    let head = "<!doctype html>\n<html lang=\"en\"><title>Shop</title>\n";
    let file = "custom_page_file = \"page.html\"";
    let odd = format!("{head}<p>Wait.</p>\n{{{{#isRejectQueue}}}}</p>{{{{/isRejectQueue}}}}");
    let found = check(file, &odd).await;
    let expected = "warning: page.html:4: room \"shop\": custom_page_file: in the states \
                    rejecting, closed: No <p> tag to close";
    assert!(found.contains(expected), "{found}");
    let inline = format!("custom_page_html = '''{head}<div>'''");
    let found = check(&inline, "").await;
    let expected = "warning: anteroom.toml: room \"shop\": custom_page_html: line 3 of the \
                    template: in every state: Unexpected open tag at end of body";
    assert!(found.contains(expected), "{found}");
    let found = check(file, &format!("{head}<p>Wait.")).await;
    assert!(!found.contains("warning: page.html"), "{found}");
}

#[tokio::test]
async fn a_page_file_is_reloaded_and_a_bad_one_changes_nothing() {
    let site = Site::with_room(1, "").await;
    let _inside = site.insider().await;
    let page = site.file.path().with_file_name("page.html");
    let shows = async |text: &str| {
        eventually(&format!("the page shows {text}"), || async {
            site.visitor().navigate("/").await.text().contains(text)
        })
        .await;
    };
    let reload = || site.gateway.signal("HUP");
    let config = SERVER.to_owned()
        + &room(
            "main",
            site.origin.address,
            1,
            "custom_page_file = \"page.html\"",
        );
    site.file.write(&config);
    std::fs::write(&page, "<p>first {{heading}}").unwrap();
    reload();
    shows("<p>first You’re in line").await;
    std::fs::write(&page, "<p>second {{heading}}").unwrap();
    reload();
    shows("<p>second You’re in line").await;
    std::fs::write(&page, "<p>third {{heading").unwrap();
    reload();
    eventually("the mistake is in the log", || async {
        let log = site.gateway.log().join("\n");
        log.contains("page.html:1: room") && log.contains("a tag is not closed")
    })
    .await;
    shows("<p>second You’re in line").await;
}
