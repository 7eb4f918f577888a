//! Pages that the operator wrote: served, read again, and refused with their lines.

use crate::support::command::run;
use crate::support::config::{ConfigFile, SERVER, room};
use crate::support::eventually;
use crate::support::site::Site;

#[tokio::test]
async fn an_operators_page_has_its_variables_and_reloads_by_a_header() {
    let template = "<title>{{heading}}</title>{{^queueAll}}{{peopleAhead}} ahead{{/queueAll}} \
                    {{reason}} {{waitTimeKnown}} {{room}}";
    let more = format!("custom_page_html = '{template}'\nqueueing_status_code = 202");
    let site = Site::with_room(1, &more).await;
    let _inside = site.insider().await;
    let answer = site.visitor().navigate("/").await;
    assert_eq!(answer.status, 202);
    assert_eq!(
        answer.text(),
        "<title>You are in line</title>0 ahead full false main"
    );
    assert_eq!(answer.headers["refresh"], "30");
    assert!(!answer.headers.contains_key("content-security-policy"));
    assert_eq!(answer.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn every_mistake_in_a_template_is_told_with_file_line_and_key() {
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
    let (code, said) = check("custom_page_html = '''\n<p>\n{{waittime}}'''", None).await;
    assert_eq!(code, Some(2), "{said}");
    let expected = "error: anteroom.toml:10: room \"shop\": custom_page_html: line 2 of the \
                    template: \
                    there is no variable \"waittime\"; did you mean waitTime?";
    assert!(said.contains(expected), "{said}");

    let file = "custom_page_file = \"page.html\"";
    let (code, said) = check(file, Some("<p>\n{{#queueAll}}\n{{oops}}")).await;
    assert_eq!(code, Some(2), "{said}");
    for expected in [
        "error: page.html:2: room \"shop\": custom_page_file: the section queueAll is not closed",
        "error: page.html:3: room \"shop\": custom_page_file: there is no variable \"oops\"",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    let (code, said) = check(file, None).await;
    assert_eq!(code, Some(2), "{said}");
    let expected =
        "error: anteroom.toml:10: room \"shop\": custom_page_file: cannot read page.html";
    assert!(said.contains(expected), "{said}");
    let (code, said) = check(file, Some(&"x".repeat(1_048_577))).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("cannot read page.html: it is too large"),
        "{said}"
    );
    let (code, said) = check(file, Some("<p>{{heading}}")).await;
    assert_eq!(code, Some(0), "{said}");
    // What only the gateway knows is told beside what stands in the page, and each of it once.
    let both = format!("{file}\npath = \"/a%c0%af\"");
    let (code, said) = check(&both, Some("{{oops}}")).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("error: page.html:1: room \"shop\""), "{said}");
    assert!(
        said.contains("error: anteroom.toml: a room's path can never be asked for"),
        "{said}"
    );
    assert!(said.contains("2 mistakes"), "{said}");
}

#[tokio::test]
async fn a_page_file_is_read_again_and_a_bad_one_changes_nothing() {
    let site = Site::with_room(1, "").await;
    let _inside = site.insider().await;
    let page = site.file.path().with_file_name("page.html");
    let shows = async |text: &str| {
        eventually(&format!("the page says {text}"), || async {
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
    shows("<p>first You are in line").await;
    std::fs::write(&page, "<p>second {{heading}}").unwrap();
    reload();
    shows("<p>second You are in line").await;
    std::fs::write(&page, "<p>third {{heading").unwrap();
    reload();
    eventually("the mistake is in the log", || async {
        let log = site.gateway.log().join("\n");
        log.contains("page.html:1: room") && log.contains("a tag is not closed")
    })
    .await;
    shows("<p>second You are in line").await;
}
