//! Meaning of valid config files and of flags.

use anteroom_config::language::Language;
use anteroom_config::{
    Checks, Config, Flags, Host, PageConfig, PageLogo, PageTemplate, Parsed, RoomConfig, Route,
    SameSite, Secure, StoreConfig,
};
use anteroom_room::rules::{
    AllocationKind, CurveFactor, Limits, NewUsersWindow, OnStoreFailure, QueueingMethod, Rules,
    SeatNeedsCookie,
};
use anteroom_room::time::{DurationMs, Timestamp};

const SMALLEST: &str = r#"
[[room]]
name = "shop"
origin = "http://127.0.0.1:3000"
total_active_users = 200
new_users_per_minute = 200
"#;

fn parse(text: &str) -> Parsed {
    Config::parse("anteroom.toml", text).unwrap_or_else(|problems| panic!("{problems}"))
}

fn room(lines: &str) -> RoomConfig {
    parse(&format!("{SMALLEST}bypass = []\n{lines}\n"))
        .config
        .rooms
        .remove(0)
}

#[test]
fn keys_that_are_left_out_have_the_documented_defaults() {
    let Parsed { config, warnings } = parse(SMALLEST);
    assert_eq!(
        warnings.len(),
        1,
        "only the one about bypass rules: {warnings:?}"
    );
    let server = &config.server;
    assert_eq!(server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(server.admin.to_string(), "127.0.0.1:8081");
    assert_eq!(server.data_dir.to_str(), Some("anteroom-data"));
    assert_eq!(server.data_center, "local");
    assert_eq!(server.timeouts.drain, DurationMs::from_secs(30));
    assert_eq!(server.size_limits.connections, 10_000);
    assert_eq!(config.store, StoreConfig::Embedded);
    let room = &config.rooms[0];
    assert_eq!(room.rules, Rules::default());
    assert_eq!(
        room.routes,
        [Route {
            host: Host::Any,
            path: "/".to_owned()
        }]
    );
    let origins = room.own_origins().unwrap().group;
    assert_eq!(origins.list[0].authority(), "127.0.0.1:3000");
    assert_eq!(room.queueing_status_code, 200);
    assert_eq!(room.non_navigation_status_code, 429);
    assert_eq!(room.max_addresses_per_ticket, None);
    assert_eq!(room.cookie.suffix, None);
    assert!(room.origin_commands.revoke);
    assert!(!room.suspended && !room.json_response_enabled);
    assert_eq!(room.page, PageConfig::default());
}

#[test]
fn shared_tickets_and_queued_programs_have_settings() {
    let room = room("non_navigation_status_code = 503\nmax_addresses_per_ticket = 6");
    assert_eq!(room.non_navigation_status_code, 503);
    assert_eq!(room.max_addresses_per_ticket, Some(6));
}

#[test]
fn the_window_of_new_users_is_a_calendar_minute_or_slides() {
    let window = |more| room(more).rules.new_users_window;
    assert_eq!(window(""), NewUsersWindow::Minute);
    assert_eq!(
        window("new_users_window = \"minute\""),
        NewUsersWindow::Minute
    );
    assert_eq!(
        window("new_users_window = \"sliding\""),
        NewUsersWindow::Sliding
    );
}

fn route(host: Option<&str>, path: &str) -> Route {
    Route {
        host: host.map_or(Host::Any, |host| Host::Name(host.to_owned())),
        path: path.to_owned(),
    }
}

#[test]
fn every_rule_of_a_room_can_be_set() {
    let room = room(
        r#"
host = "Shop.Example:443"
path = "//sale/"
session_duration = "1h30m"
disable_session_renewal = true
queueing_method = "FIFO"
queue_all = true
opens_at = 2030-01-31T10:00:00+01:00
draw = true
suspended = true
allocation = "curve"
curve_factor = 0.20412
pacing = false
seat_needs_cookie = "always"
position_grace = "10s"
turn_held_for = "20s"
refresh_interval = "20s"
on_store_failure = "admit"
json_response_enabled = true
queueing_status_code = "503"
cookie_suffix = "x"
cookie_attributes = { samesite = "none", secure = "always" }
enabled_origin_commands = []
additional_routes = [{ host = "www.shop.example" }, { path = "/buy" }]
"#,
    );
    assert_eq!(
        room.rules,
        Rules {
            limits: Limits {
                total_active_users: 200,
                new_users_per_minute: 200
            },
            new_users_window: NewUsersWindow::Minute,
            session_duration: DurationMs::from_secs(5_400),
            session_renewal: false,
            queueing_method: QueueingMethod::Fifo,
            queue_all: true,
            opens_at: Some(Timestamp(1_896_080_400_000)),
            draw: true,
            allocation: AllocationKind::Curve,
            curve_factor: CurveFactor {
                millionths: 204_120
            },
            pacing: false,
            seat_needs_cookie: SeatNeedsCookie::Always,
            position_grace: DurationMs::from_secs(10),
            turn_held_for: DurationMs::from_secs(20),
            refresh_interval: Some(DurationMs::from_secs(20)),
            on_store_failure: OnStoreFailure::Admit,
            ..Rules::default()
        }
    );
    assert_eq!(
        room.routes,
        [
            route(Some("shop.example"), "/sale"),
            route(Some("www.shop.example"), "/"),
            route(None, "/buy"),
        ]
    );
    assert!(room.suspended && room.json_response_enabled && !room.origin_commands.revoke);
    assert_eq!(room.queueing_status_code, 503);
    assert_eq!(room.cookie_name(), "__anteroom_x");
    assert_eq!(room.cookie.same_site, SameSite::None);
    assert_eq!(room.cookie.secure, Secure::Always);
}

#[test]
fn a_date_is_the_same_with_and_without_quotes() {
    let at = |text: &str| room(&format!("opens_at = {text}")).rules.opens_at;
    let expected = Some(Timestamp(1_896_080_400_000));
    assert_eq!(at("2030-01-31T10:00:00+01:00"), expected);
    assert_eq!(at("\"2030-01-31T10:00:00+01:00\""), expected);
    assert_eq!(at("\"2030-01-31 09:00Z\""), expected);
}

#[test]
fn a_bypass_rule_knows_its_line() {
    let text = SMALLEST.to_owned() + "bypass = [\n  'true',\n\n  \"false\",\n]\n";
    let rules = &parse(&text).config.rooms[0].bypass;
    assert_eq!((rules[0].expression.as_str(), rules[0].line), ("true", 8));
    assert_eq!((rules[1].expression.as_str(), rules[1].line), ("false", 10));
}

#[test]
fn a_key_is_read_in_every_base64_spelling_and_never_printed() {
    let keys = [
        "q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE=",
        "q7TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyI",
        "_-TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyE",
        "/+TzN0mK2xVbYw8rLh5uJc1eAo9sGd3fPi6kRt4nXyI=",
    ];
    let text = format!("server.ticket_keys = {keys:?}\n{SMALLEST}");
    let config = parse(&text).config;
    assert_eq!(config.server.ticket_keys.len(), 4);
    assert_eq!(config.server.ticket_keys[0][..3], [0xab, 0xb4, 0xf3]);
    let debug = format!("{:?}", config.server);
    assert!(debug.contains("ticket_keys: [4 keys]"), "{debug}");
}

#[test]
fn rooms_without_a_common_host_or_cookie_do_not_clash() {
    let rooms = r#"
[[room]]
name = "a"
host = "a.example"
cookie_suffix = "x"
origin = "http://127.0.0.1:3000"
total_active_users = 1
new_users_per_minute = 2147483647
bypass = []
[[room]]
name = "b"
host = "b.example"
cookie_suffix = "x"
origin = "http://127.0.0.1:3000"
total_active_users = 1
new_users_per_minute = 1
bypass = []
[[room]]
name = "c"
host = "b.example"
path = "/c"
origin = "http://127.0.0.1:3000"
total_active_users = 1
new_users_per_minute = 1
bypass = []
"#;
    let Parsed { config, warnings } = parse(rooms);
    assert_eq!(config.rooms.len(), 3);
    assert_eq!(warnings, []);
    assert_ne!(config.rooms[1].cookie_name(), config.rooms[2].cookie_name());
}

fn smallest_flags() -> Flags {
    Flags::default()
        .text("room.origin", "http://127.0.0.1:3000")
        .number("room.total_active_users", 200)
        .number("room.new_users_per_minute", 200)
}

#[test]
fn flags_mean_the_same_as_a_file() {
    let flags = smallest_flags().text("room.name", "shop");
    let from_flags = Config::single_room(&flags).unwrap();
    assert_eq!(from_flags.config, parse(SMALLEST).config);
    let warning = from_flags.warnings[0].to_string();
    assert!(warning.starts_with("--bypass: no rule: "), "{warning}");

    let flags = smallest_flags()
        .texts("room.bypass", &["path == \"/health\""])
        .on("room.queue_all");
    let parsed = Config::single_room(&flags).unwrap();
    assert_eq!(parsed.warnings, []);
    assert_eq!(parsed.config.rooms[0].name.as_str(), "main");
    assert!(parsed.config.rooms[0].rules.queue_all);
    assert_eq!(parsed.config.rooms[0].bypass[0].line, 0);
}

#[test]
fn mistakes_in_flags_are_reported_together_by_flag_name() {
    let flags = Flags::default()
        .text("server.listen", ":80")
        .texts("server.trusted_proxies", &["ten"])
        .number("room.total_active_users", "many")
        .number("room.new_users_per_minute", 0)
        .text("room.session_duration", "5")
        .on("room.draw");
    let problems = Config::single_room(&flags).unwrap_err();
    let expected = [
        concat!(
            r#"--listen: found ":80", allowed: an IP address and a port, such as "#,
            r#""127.0.0.1:8080" or "[::1]:8080"; did you mean "0.0.0.0:80"?"#,
        ),
        concat!(
            r#"--trusted-proxies[1]: found "ten", allowed: an IP address or a network, "#,
            r#"such as "10.0.0.0/8""#,
        ),
        r#"--total-active-users: found "many", allowed: an integer from 1 to 2147483647"#,
        "--new-users-per-minute: found 0, allowed: an integer from 1 to 2147483647",
        r#"--session-duration: found "5", allowed: a duration from 1s to 24h; did you mean "5m"?"#,
        r#"--draw: found true, allowed: only together with opens_at and queueing_method "fifo""#,
        concat!(
            r#"--origin: missing, allowed: "http://host", "https://host", or either with a port, "#,
            r#"as in "http://host:port""#,
        ),
    ];
    assert_eq!(problems.to_string(), expected.join("\n"));
}

#[test]
fn a_thousand_rooms_are_accepted_and_one_more_is_rejected() {
    let rooms = |count: u32| -> String {
        (0..count)
            .map(|number| {
                format!(
                    "[[room]]\nname = \"r{number}\"\npath = \"/{number}\"\nbypass = []\n\
                     origin = \"http://127.0.0.1:1\"\ntotal_active_users = 1\n\
                     new_users_per_minute = 1\n"
                )
            })
            .collect()
    };
    assert_eq!(parse(&rooms(1_000)).config.rooms.len(), 1_000);
    let problems = Config::parse("x", &rooms(1_001)).unwrap_err();
    assert_eq!(
        problems.to_string(),
        "x:1: room: found 1001 rooms, allowed: at most 1000"
    );
}

#[test]
fn a_file_nested_to_the_parsers_bound_is_rejected_without_a_crash() {
    let dotted = "a.".repeat(14);
    let open = format!("{{ {dotted}a = ").repeat(79);
    let text = format!("[{dotted}a]\n{dotted}b = {open}1{}", " }".repeat(79));
    assert!(Config::parse("x", &text).is_err());
    assert!(Config::parse("x", &format!("{}a = 1", "a.".repeat(1_000_000))).is_err());
    assert!(Config::parse("x", &"[".repeat(1_000_000)).is_err());
    assert!(Config::parse("x", &format!("a = {}", "[".repeat(1_000_000))).is_err());
    assert!(Config::parse("x", &format!("a = {}", "{a=".repeat(1_000_000))).is_err());
}

#[test]
fn a_page_accepts_every_name_of_a_language_and_template() {
    for (name, language) in [
        ("de", Language::German),
        ("PT-br", Language::Portuguese),
        ("zh-CN", Language::SimplifiedChinese),
    ] {
        let page = room(&format!("default_template_language = {name:?}")).page;
        assert_eq!(page.language, language);
        assert_eq!(page.template, None);
    }
    let inline = room("custom_page_html = '''\n<p>{{heading}}'''").page;
    let expected = PageTemplate::Html("<p>{{heading}}".to_owned());
    assert_eq!(inline.template, Some(expected));
    let file = room("custom_page_file = \"pages/waiting.html\"").page;
    let expected = PageTemplate::File {
        path: "pages/waiting.html".into(),
        line: 8,
    };
    assert_eq!(file.template, Some(expected));
}

#[test]
fn every_template_mistake_is_reported_with_its_line() {
    let text = format!("{SMALLEST}bypass = []\ncustom_page_html = \"{{{{x}}}}\"\npacing = 1\n");
    let checks = Checks {
        template: |template| vec![(3, format!("odd: {template}"))],
        ..Checks::default()
    };
    let problems = Config::parse_with("a.toml", &text, checks).unwrap_err();
    let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines[0],
        "a.toml:8: room \"shop\": custom_page_html: line 3 of the template: odd: {{x}}"
    );
    assert!(lines[1].starts_with("a.toml:9: "), "{lines:?}");
}

#[test]
fn a_page_has_a_title_a_colour_links_facts_and_messages() {
    let page = room(
        "page.title = \"Nordlys Festival\"\npage.accent = \"#5a3fd6\"\npage.noun = \"shop\"\n\
         page.help = \"/help\"\npage.imprint = \"https://nordlys.example/imprint\"\n\
         page.logo = \"logo.svg\"\npage.facts = [\"One\", \"Two\"]\n\
         page.messages = [{ language = \"de-DE\", text = \"Ab zehn.\" }]\n\
         page.nouns = [{ language = \"de\", text = \"Laden\" }]",
    )
    .page;
    assert_eq!(page.title.as_deref(), Some("Nordlys Festival"));
    assert_eq!(page.accent.unwrap().fill(), "#5a3fd6");
    assert_eq!(page.noun_in(Language::English), Some("shop"));
    assert_eq!(page.noun_in(Language::German), Some("Laden"));
    assert_eq!(page.noun_in(Language::French), None);
    assert_eq!(page.help.as_deref(), Some("/help"));
    assert_eq!(page.facts, ["One", "Two"]);
    assert_eq!(page.messages.of(Language::German), Some("Ab zehn."));
    assert_eq!(page.messages.of(Language::English), None);
    let logo = PageLogo::File {
        path: "logo.svg".into(),
        line: 13,
    };
    assert_eq!(page.logo, Some(logo));
}

#[test]
fn every_mistake_of_a_page_is_reported_with_its_line_and_what_is_allowed() {
    let text = format!(
        "{SMALLEST}bypass = []\n[room.page]\ntitle = \"\"\naccent = \"#ffb000\"\n\
         help = \"javascript:alert(1)\"\nlogo = \"logo.gif\"\nfacts = [\"a\\nb\"]\ncolour = 1\n\
         messages = [{{ language = \"tlh\", text = \"x\" }}, {{ text = \"y\" }}]\n\
         nouns = [{{ language = \"de\", text = \"a\" }}, \
         {{ language = \"de-DE\", text = \"b\" }}]\n"
    );
    let problems = Config::parse("a.toml", &text).unwrap_err();
    let lines: Vec<String> = problems.0.iter().map(ToString::to_string).collect();
    let check = |line: usize, part: &str| {
        let start = format!("a.toml:{line}: ");
        let found = lines
            .iter()
            .any(|text| text.starts_with(&start) && text.contains(part));
        assert!(found, "{start}{part} in {lines:#?}");
    };
    check(9, "1 to 60 characters in one line");
    check(10, "it has 1.8:1; the nearest color that passes is \"#");
    check(11, "mailto:");
    check(12, ".svg, .png, .webp or .jpg");
    check(13, "page.facts[1]");
    check(14, "page.colour");
    check(15, "language");
    check(15, "missing");
    check(16, "the same language a second time");
    assert_eq!(lines.len(), 9, "{lines:#?}");
}
