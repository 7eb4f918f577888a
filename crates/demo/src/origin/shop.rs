//! Pages of the shop: small, plain, and made from numbers.
//!
//! No text of a request is part of a page, so nothing has to be escaped.

use std::fmt::Write as _;

use anteroom_room::time::DurationMs;

/// Number of items that the shop sells; enough for a visitor to look around.
pub(crate) const ITEMS: u32 = 12;

/// Stats of the shop for a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShopStats {
    /// Active visitors.
    pub(super) inside: usize,
    /// Number of visitors that the shop can serve at full speed.
    pub(super) capacity: u32,
    /// Present time of a page, in ms.
    pub(super) page_ms: u128,
    /// Time until this visitor's seat ends; `None` if the visitor did not come by the gateway.
    pub(super) seat_left: Option<DurationMs>,
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:1.05rem/1.5 system-ui,sans-serif;max-width:38rem;margin:2rem auto;padding:0 1rem}\
ul{padding-left:1.2rem;columns:2}\
button{font:inherit;padding:.5rem 1rem;margin-right:.5rem}\
form{display:inline}\
footer{border-top:1px solid #8886;margin-top:2rem;padding-top:.5rem;font-size:.95rem}";

/// Counts the seat down and follows `/events`. Without it, the page shows the state at its
/// creation.
const SCRIPT: &str = "\
var s=document.getElementById('seat'),end=s&&Date.now()+1000*s.textContent;\
if(s)setInterval(function(){s.textContent=Math.max(0,Math.ceil((end-Date.now())/1000))},250);\
if(window.EventSource)new EventSource('/events').onmessage=function(e){\
var d=JSON.parse(e.data);document.getElementById('inside').textContent=d.inside;\
document.getElementById('ms').textContent=d.pageMs};";

/// Returns the number of an item's page; `None` if the path is not one.
pub(super) fn item_number(path: &str) -> Option<u32> {
    let number: u32 = path.strip_prefix("/item/")?.parse().ok()?;
    (1..=ITEMS).contains(&number).then_some(number)
}

/// Returns the first page.
pub(super) fn home(stats: &ShopStats) -> String {
    let mut items = String::new();
    for number in 1..=ITEMS {
        write!(
            items,
            "<li><a href=\"/item/{number}\">Lamp no. {number}</a></li>"
        )
        .expect("writing to a string cannot fail");
    }
    page(
        "The lamp shop",
        &format!("<p>You are in. Look around:</p><ul>{items}</ul>"),
        stats,
    )
}

/// Returns the page of an item.
pub(super) fn item(stats: &ShopStats, number: u32) -> String {
    let content = format!(
        "<p>It shines. It costs {price} euros.</p>\
         <form method=\"post\" action=\"/checkout\"><button>Buy</button></form>\
         <a href=\"/\">Back to the shop</a>",
        price = 10 + 7 * number,
    );
    page(&format!("Lamp no. {number}"), &content, stats)
}

/// Returns the page after an order.
pub(super) fn thanks(stats: &ShopStats) -> String {
    let content = "<p>Nothing will be sent: this is a demo.</p>\
                   <p><a href=\"/\">Back to the shop</a></p>";
    page("Thank you for your order", content, stats)
}

/// Returns the page after a logout. It has no stats, because the visitor is not active any more.
pub(super) fn goodbye() -> String {
    document(
        "Goodbye",
        "<p>Your seat is free for another visitor.</p>\
         <p><a href=\"/\">Enter again</a> (you may have to queue)</p>",
    )
}

fn page(title: &str, content: &str, stats: &ShopStats) -> String {
    let ShopStats {
        inside,
        capacity,
        page_ms,
        seat_left,
    } = stats;
    let seat = seat_left.map_or_else(String::new, |left| {
        let seconds = left.secs_ceil();
        format!("Your seat lasts <b id=\"seat\">{seconds}</b> s unless you click on. ")
    });
    let content = format!(
        "{content}<footer><p>{seat}Inside: <b id=\"inside\">{inside}</b>; this shop has room for \
         {capacity}. A page takes <b id=\"ms\">{page_ms}</b> ms.</p>\
         <form method=\"post\" action=\"/logout\"><button>Log out</button></form></footer>\
         <script>{SCRIPT}</script>"
    );
    document(title, &content)
}

fn document(title: &str, content: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>{title}</title><style>{STYLE}</style></head>\
         <body><main><h1>{title}</h1>{content}</main></body></html>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_is_a_number_that_the_shop_sells() {
        for (path, number) in [
            ("/item/1", Some(1)),
            ("/item/12", Some(12)),
            ("/item/13", None),
            ("/item/0", None),
            ("/item/-1", None),
            ("/item/", None),
            ("/items", None),
        ] {
            assert_eq!(item_number(path), number, "{path}");
        }
    }

    #[test]
    fn a_page_shows_active_visitors_and_the_time_left() {
        let stats = ShopStats {
            inside: 41,
            capacity: 50,
            page_ms: 20,
            seat_left: Some(DurationMs(9_001)),
        };
        let page = home(&stats);
        assert!(page.contains("<b id=\"inside\">41</b>"));
        assert!(page.contains("<b id=\"seat\">10</b>"));
        let stats = ShopStats {
            seat_left: None,
            ..stats
        };
        assert!(!item(&stats, 3).contains("id=\"seat\""));
    }
}
