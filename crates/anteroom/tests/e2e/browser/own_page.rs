//! A page of the operator with our script: the template of `docs/how-to/custom-page.md`.

use anteroom_testkit::browser::{Browser, Setup};

use super::Scene;
use super::neighbour::Stage;

const MINUTE: &str = "session_duration = \"60s\"\nposition_grace = \"40s\"";

/// Returns the template of the docs.
fn template() -> &'static str {
    let docs = include_str!("../../../../../docs/how-to/custom-page.md");
    let (_, rest) = docs.split_once("```html\n").expect("a template");
    rest.split_once("```").expect("its end").0
}

/// Opens a room with that page.
async fn scene() -> Scene {
    let page = template();
    Scene::new(1, &format!("{MINUTE}\ncustom_page_html = '''{page}'''")).await
}

#[tokio::test]
async fn a_custom_page_with_the_script_updates_itself_and_enters_at_its_turn() {
    let scene = scene().await;
    let browser = Browser::start(Setup::Usual).await;
    let inside = scene.neighbour().await;
    let ahead = scene.neighbour().await;
    assert_eq!(ahead.stage(), Stage::Waiting);

    let address = scene.url("/lamps?colour=red#third");
    browser.open(&address).await;
    browser.until_shows("#anteroom-number", "2").await;
    let title = "2 in line · ";
    let is_titled = async || browser.title().await.starts_with(title);
    browser.until("the title has the position", is_titled).await;
    let looks = "const tag = document.getElementById('anteroom-tag').className;
         return [tag, document.body.className, document.querySelectorAll('noscript + p').length]";
    let looks = browser.run(looks).await;
    assert_eq!(looks[0], "state anteroom-go", "it keeps its own class");
    assert_eq!(looks[1], "shop");
    browser.run("window.marker = 'the same page'").await;
    browser
        .run(
            "window.heard = [];
             const region = document.getElementById('anteroom-shout');
             new MutationObserver(() => sessionStorage.setItem('heard', region.textContent))
                 .observe(region, {childList: true, characterData: true, subtree: true})",
        )
        .await;
    browser.take_pictures("own-page").await;

    ahead.leave().await;
    browser.until_shows("#anteroom-number", "1").await;
    let marker = browser.run("return window.marker").await;
    assert_eq!(marker, "the same page", "it was reloaded");
    assert!(scene.shop.requests_of_browser().is_empty());

    inside.leave().await;
    browser.until_shows("#shop", "The shop").await;
    assert_eq!(browser.address().await, address);
    let heard = browser.run("return sessionStorage.getItem('heard')").await;
    assert_eq!(heard, "It’s your turn. You go in automatically in 8.");
    assert_eq!(scene.shop.requests_of_browser().len(), 1);
    scene.check_limits();
    browser.close().await;
}

#[tokio::test]
async fn a_custom_page_with_the_script_reloads_without_scripts_and_explains_cookies() {
    let scene = scene().await;
    let inside = scene.neighbour().await;
    let browser = Browser::start(Setup::NoCookies).await;
    browser.open(&scene.url("/")).await;
    browser
        .until_shows("#heading", "Please allow cookies")
        .await;
    browser.close().await;

    let browser = Browser::start(Setup::NoScript).await;
    browser.open(&scene.url("/")).await;
    browser
        .until_shows("#anteroom-heading", "You’re in line")
        .await;
    inside.leave().await;
    // By itself: nothing is clicked.
    browser.until_shows("#shop", "The shop").await;
    scene.check_limits();
    browser.close().await;
}
