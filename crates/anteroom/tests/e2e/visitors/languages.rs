//! Language of the page: negotiation, change, and what the origin sees of it.

use http::Method;

use crate::support::client::{Client, TestResponse};
use crate::support::eventually;
use crate::support::raw::{ask, status_of};
use crate::support::site::Site;

/// Navigates like a browser with these preferences.
async fn navigate(visitor: &mut Client, path: &str, preferences: &str) -> TestResponse {
    let headers = [
        ("accept", "text/html"),
        ("sec-fetch-dest", "document"),
        ("accept-language", preferences),
    ];
    visitor.send(Method::GET, path, &headers, "").await
}

#[tokio::test]
async fn the_page_speaks_the_language_of_the_browser_or_else_the_rooms() {
    let site = Site::with_room(1, "default_template_language = \"pl-PL\"").await;
    let _inside = site.insider().await;
    for (preferences, tag, heading) in [
        (
            "de-AT,de;q=0.9,en;q=0.8",
            "de",
            "Sie sind in der Warteschlange",
        ),
        ("fi, ar;q=0.3", "ar", "أنت في الطابور"),
        ("fi", "pl", "Jesteś w kolejce"),
    ] {
        let response = navigate(&mut site.visitor(), "/", preferences).await;
        assert!(response.is_queued());
        assert_eq!(response.headers["content-language"], tag);
        let vary = response.headers["vary"].to_str().unwrap();
        assert!(vary.contains("Accept-Language"), "{vary}");
        let page = response.text();
        assert!(
            page.contains(&format!("<html lang=\"{tag}\"")),
            "{preferences}"
        );
        assert!(page.contains(&format!("<h1 id=\"heading\">{heading}</h1>")));
        assert_eq!(page.contains("dir=\"rtl\""), tag == "ar");
        // Later texts are in the language of the page, whatever the poll's own headers say.
        let place = format!("/.well-known/anteroom/position?room=main&amp;lang={tag}");
        assert!(
            page.contains(&format!("data-position=\"{place}\"")),
            "{page}"
        );
        let place = place.replace("&amp;", "&");
        let words = site.visitor().get(&place).await.json()["words"].clone();
        assert_eq!(words["heading"], heading);
    }
}

#[tokio::test]
async fn a_language_choice_is_remembered_and_hidden_from_the_origin() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut visitor = site.visitor();
    navigate(&mut visitor, "/lamps?a=1%2B2", "de").await;
    let form = "/.well-known/anteroom/language?room=main&back=%2Flamps%3Fa%3D1%252B2&to=fr";
    let response = visitor.get(form).await;
    assert_eq!(response.status, 303);
    assert_eq!(response.headers["location"], "/lamps?a=1%2B2");
    let page = navigate(&mut visitor, "/lamps?a=1%2B2", "de").await.text();
    assert!(page.contains("Vous êtes dans la file"), "{page}");

    for bad in ["room=main&to=tlh", "room=other&to=fr", "to=fr"] {
        let path = format!("/.well-known/anteroom/language?{bad}");
        assert_eq!(visitor.get(&path).await.status, 400, "{bad}");
    }
    let open_redirect = "/.well-known/anteroom/language?room=main&to=fr&back=%2F%2Fevil.example";
    assert_eq!(visitor.get(open_redirect).await.headers["location"], "/");

    let posted = visitor.send(Method::POST, form, &[], "").await;
    assert_eq!(posted.status, 400, "a POST chooses nothing");
    let headed = visitor.send(Method::HEAD, form, &[], "").await;
    assert_eq!(headed.status, 303);
    let counted = "anteroom_verdicts_total{room=\"main\",verdict=\"language\"}";
    assert_eq!(site.metric(counted).await, Some(3.0));

    let seen = inside.get("/lamps").await;
    assert!(!seen.is_queued());
    inside
        .cookies
        .insert("__anteroom_.lang".to_owned(), "fr".to_owned());
    inside.cookies.insert("cart".to_owned(), "7".to_owned());
    inside.get("/lamps").await;
    let cookies = site.origin.last().headers["cookie"].clone();
    assert_eq!(cookies, "cart=7", "the origin gets no choice of language");
}

#[tokio::test]
async fn an_error_page_is_in_the_visitors_language_or_the_rooms() {
    let room = "suspended = true\ndefault_template_language = \"fr\"";
    let site = Site::with_room(10, room).await;
    let Site {
        gateway,
        origin,
        file: _file,
    } = site;
    drop(origin);
    let response_to = |headers| ask(gateway.address, "a.example", "/", headers);
    eventually("the origin is gone", || async {
        status_of(&response_to("").await) == 502
    })
    .await;
    for (headers, expected) in [
        ("", "Le site est injoignable"),
        ("accept-language: fi\r\n", "Le site est injoignable"),
        (
            "accept-language: de\r\n",
            "Die Website ist gerade nicht erreichbar",
        ),
        (
            "accept-language: de\r\ncookie: a=b; __anteroom_.lang=pl\r\n",
            "Nie można połączyć się ze stroną",
        ),
        ("accept-language: he\r\n", "<html lang=\"he\" dir=\"rtl\">"),
        ("", "<p class=\"tag hold\">HTTP 502</p>"),
        ("", "@media (prefers-color-scheme:dark)"),
        (
            "accept-language: de\r\naccept: application/json\r\n",
            "bad_gateway",
        ),
    ] {
        let response = response_to(headers).await;
        assert!(response.contains(expected), "{headers}: {response}");
    }
}
