//! Which language does the page speak, how is it changed, and what does the origin see of that?

use http::Method;

use crate::support::client::{Answer, Client};
use crate::support::eventually;
use crate::support::raw::{ask, status_of};
use crate::support::site::Site;

/// As a browser that navigates and has wishes.
async fn navigate(visitor: &mut Client, path: &str, wishes: &str) -> Answer {
    let headers = [
        ("accept", "text/html"),
        ("sec-fetch-dest", "document"),
        ("accept-language", wishes),
    ];
    visitor.send(Method::GET, path, &headers, "").await
}

#[tokio::test]
async fn the_page_speaks_the_language_of_the_browser_or_else_the_rooms() {
    let site = Site::with_room(1, "default_template_language = \"pl-PL\"").await;
    let _inside = site.insider().await;
    for (wishes, tag, heading) in [
        (
            "de-AT,de;q=0.9,en;q=0.8",
            "de",
            "Sie stehen in der Schlange",
        ),
        ("fi, ar;q=0.3", "ar", "أنت في الطابور"),
        ("fi", "pl", "Jesteś w kolejce"),
    ] {
        let answer = navigate(&mut site.visitor(), "/", wishes).await;
        assert!(answer.is_queued());
        assert_eq!(answer.headers["content-language"], tag);
        let vary = answer.headers["vary"].to_str().unwrap();
        assert!(vary.contains("Accept-Language"), "{vary}");
        let page = answer.text();
        assert!(page.contains(&format!("<html lang=\"{tag}\"")), "{wishes}");
        assert!(page.contains(&format!("<h1 id=\"heading\">{heading}</h1>")));
        assert_eq!(page.contains("dir=\"rtl\""), tag == "ar");
        // The words that come later are those of the page, whatever the question's own headers say.
        let place = format!("/.well-known/anteroom/place?room=main&amp;lang={tag}");
        assert!(page.contains(&format!("data-place=\"{place}\"")), "{page}");
        let place = place.replace("&amp;", "&");
        let words = site.visitor().get(&place).await.json()["words"].clone();
        assert_eq!(words["heading"], heading);
    }
}

#[tokio::test]
async fn a_language_choice_leads_back_is_remembered_and_hidden_from_the_origin() {
    let site = Site::with_room(1, "").await;
    let mut inside = site.insider().await;
    let mut visitor = site.visitor();
    navigate(&mut visitor, "/lamps?a=1%2B2", "de").await;
    let form = "/.well-known/anteroom/language?room=main&back=%2Flamps%3Fa%3D1%252B2&to=fr";
    let answer = visitor.get(form).await;
    assert_eq!(answer.status, 303);
    assert_eq!(answer.headers["location"], "/lamps?a=1%2B2");
    let page = navigate(&mut visitor, "/lamps?a=1%2B2", "de").await.text();
    assert!(page.contains("Vous êtes dans la file"), "{page}");

    for bad in ["room=main&to=tlh", "room=other&to=fr", "to=fr"] {
        let path = format!("/.well-known/anteroom/language?{bad}");
        assert_eq!(visitor.get(&path).await.status, 400, "{bad}");
    }
    let elsewhere = "/.well-known/anteroom/language?room=main&to=fr&back=%2F%2Fevil.example";
    assert_eq!(visitor.get(elsewhere).await.headers["location"], "/");

    let posted = visitor.send(Method::POST, form, &[], "").await;
    assert_eq!(posted.status, 400, "nothing is chosen by sending");
    let headed = visitor.send(Method::HEAD, form, &[], "").await;
    assert_eq!(headed.status, 303);
    let counted = "anteroom_verdicts_total{room=\"main\",verdict=\"language\"}";
    assert_eq!(site.figure(counted).await, Some(3.0));

    let seen = inside.get("/lamps").await;
    assert!(!seen.is_queued());
    inside
        .cookies
        .insert("__anteroom_.lang".to_owned(), "fr".to_owned());
    inside.cookies.insert("cart".to_owned(), "7".to_owned());
    inside.get("/lamps").await;
    let cookies = site.origin.last().headers["cookie"].clone();
    assert_eq!(cookies, "cart=7", "the choice is ours alone");
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
    let asked = |headers| ask(gateway.address, "a.example", "/", headers);
    eventually("the origin is gone", || async {
        status_of(&asked("").await) == 502
    })
    .await;
    for (headers, told) in [
        ("", "Le site est injoignable"),
        ("accept-language: fi\r\n", "Le site est injoignable"),
        (
            "accept-language: de\r\n",
            "Die Seite ist gerade nicht erreichbar",
        ),
        (
            "accept-language: de\r\ncookie: a=b; __anteroom_.lang=pl\r\n",
            "Nie można połączyć się ze stroną",
        ),
        ("accept-language: he\r\n", "<html lang=\"he\" dir=\"rtl\">"),
        (
            "accept-language: de\r\naccept: application/json\r\n",
            "bad_gateway",
        ),
    ] {
        let answer = asked(headers).await;
        assert!(answer.contains(told), "{headers}: {answer}");
    }
}
