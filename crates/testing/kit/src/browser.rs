//! Chromium with an empty profile, driven through its own chromedriver.
//!
//! Both must be on the path. A test without its browser fails, and its message names the packages
//! to install. With `ANTEROOM_SCREENSHOTS=DIR` in the environment, [`Browser::take_pictures`] saves
//! pictures in `DIR`: phone and desktop, light and dark.
//!
//! ```text
//! ANTEROOM_SCREENSHOTS=/some/folder cargo nextest run -p anteroom --test e2e browser
//! ```
#![expect(
    clippy::missing_panics_doc,
    reason = "all of it panics where the browser does not obey: that fails the test"
)]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use fantoccini::error::CmdError;
use fantoccini::wd::{Capabilities, WebDriverCompatibleCommand};
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{Instant, interval};
use url::{ParseError, Url};

use crate::waiting::{POLL_INTERVAL, TIMEOUT};

/// Message of panics: a browser that does not obey fails the test.
const OBEYS: &str = "the browser obeys";
/// Environment variable with the folder for pictures.
const SCREENSHOTS: &str = "ANTEROOM_SCREENSHOTS";

/// Flags of Chromium: no window, no sandbox (build servers run as root), and no connections but to
/// the page under test.
const FLAGS: [&str; 9] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// Screens of pictures: name, width and height in CSS pixels, whether it is a phone.
const SCREENS: [(&str, u64, u64, bool); 2] =
    [("phone", 390, 844, true), ("desktop", 1280, 800, false)];

/// Most starts of chromedriver. It takes a port that is free by IPv6 and gives up if the same port
/// is taken by IPv4, which happens where many connections are open.
const DRIVER_STARTS_MAX: usize = 20;

/// Settings of the browser.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Setup {
    /// Default settings.
    Usual,
    /// Scripts are off.
    NoScript,
    /// Cookies are off.
    NoCookies,
}

/// Browser. Killed when dropped; [`Browser::close`] ends it properly.
#[derive(Debug)]
pub struct Browser {
    page: Client,
    main_process: Option<u64>,
    driver: Child,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser with an empty history.
    pub async fn start(setup: Setup) -> Self {
        let (chromium, chromedriver) = programs();
        let profile = tempfile::tempdir().expect(OBEYS);
        let (driver, port) = start_driver(&chromedriver).await;
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(capabilities(&chromium, profile.path(), setup))
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .expect("chromedriver starts chromium");
        let granted = page.capabilities().cloned().unwrap_or_default();
        Self {
            page,
            main_process: granted.get("goog:processID").and_then(Value::as_u64),
            driver,
            _profile: profile,
        }
    }

    /// Closes all tabs, then ends the processes.
    pub async fn close(mut self) {
        self.page.clone().close().await.expect(OBEYS);
        self.main_process = None;
        self.driver.kill().await.expect(OBEYS);
    }

    /// Opens an address; returns when its page has loaded.
    pub async fn open(&self, url: &str) {
        self.page.goto(url).await.expect(OBEYS);
    }

    /// Presses "reload".
    pub async fn reload(&self) {
        self.page.refresh().await.expect(OBEYS);
    }

    /// Presses "back".
    pub async fn back(&self) {
        self.page.back().await.expect(OBEYS);
    }

    /// Clicks the first element that `css` finds.
    pub async fn click(&self, css: &str) {
        let element = self.page.find(Locator::Css(css)).await;
        element.expect(OBEYS).click().await.expect(OBEYS);
    }

    /// Opens a tab and switches to it.
    pub async fn open_tab(&self) {
        let tab = self.page.new_window(true).await.expect(OBEYS);
        self.page.switch_to_window(tab.handle).await.expect(OBEYS);
    }

    /// Closes tab `number`, from 0, and switches to the last one.
    pub async fn close_tab(&self, number: usize) {
        self.switch_to_tab(number).await;
        self.page.close_window().await.expect(OBEYS);
        let tabs = self.page.windows().await.expect(OBEYS);
        let last = tabs.last().expect(OBEYS).clone();
        self.page.switch_to_window(last).await.expect(OBEYS);
    }

    /// Freezes the page as a phone does in the background, or wakes it.
    pub async fn set_frozen(&self, is_frozen: bool) {
        let state = if is_frozen { "frozen" } else { "active" };
        let parameters = json!({"state": state});
        let result = self
            .try_command("Page.setWebLifecycleState", parameters)
            .await;
        // A page that wakes may navigate at once, before the browser has answered.
        let has_navigated = |error: &CmdError| error.to_string().contains("aborted by navigation");
        if result.as_ref().is_err_and(has_navigated) {
            return;
        }
        result.expect(OBEYS);
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub async fn set_light(&self, light: &str) {
        let media = json!([{"name": "prefers-color-scheme", "value": light}]);
        self.command("Emulation.setEmulatedMedia", json!({"features": media}))
            .await;
    }

    /// Returns the number of tabs.
    pub async fn tabs(&self) -> usize {
        self.page.windows().await.expect(OBEYS).len()
    }

    /// Switches to tab `number`, from 0.
    pub async fn switch_to_tab(&self, number: usize) {
        let tabs = self.page.windows().await.expect(OBEYS);
        let tab = tabs[number].clone();
        self.page.switch_to_window(tab).await.expect(OBEYS);
    }

    /// Returns the address in the address bar.
    pub async fn address(&self) -> String {
        self.page.current_url().await.expect(OBEYS).into()
    }

    /// Returns the visible text of the first element that `css` finds; `None` if there is no such
    /// element, or the page is just being left.
    pub async fn text(&self, css: &str) -> Option<String> {
        let element = self.page.find(Locator::Css(css)).await.ok()?;
        element.text().await.ok()
    }

    /// Returns an attribute of the first element that `css` finds.
    pub async fn attribute(&self, css: &str, name: &str) -> Option<String> {
        let element = self.page.find(Locator::Css(css)).await.ok()?;
        element.attr(name).await.ok()?
    }

    /// Returns the title of the tab; empty while a page is being left.
    pub async fn title(&self) -> String {
        self.page.title().await.unwrap_or_default()
    }

    /// Runs a script in the page as the page's own, and returns its value.
    pub async fn run(&self, script: &str) -> Value {
        self.page.execute(script, Vec::new()).await.expect(OBEYS)
    }

    /// Waits until `css` finds a visible element with exactly this text.
    pub async fn until_shows(&self, css: &str, text: &str) {
        let what = format!("{css} shows {text:?}");
        let shows = async || self.text(css).await.as_deref() == Some(text);
        self.until(&what, shows).await;
    }

    /// Waits until the tab has this title.
    pub async fn until_titled(&self, title: &str) {
        let what = format!("the tab has the title {title:?}");
        self.until(&what, async || self.title().await == title)
            .await;
    }

    /// Waits until `holds` returns true; otherwise fails and prints the page.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        let mut looks = interval(POLL_INTERVAL);
        while !holds().await {
            if Instant::now() > deadline {
                let page = self.text("body").await.unwrap_or_default();
                panic!("still not so: {what}; at {}: {page}", self.address().await);
            }
            looks.tick().await;
        }
    }

    /// Whether pictures are wanted (see the module).
    #[must_use]
    pub fn takes_pictures() -> bool {
        std::env::var_os(SCREENSHOTS).is_some()
    }

    /// Takes pictures of the whole page, if they are wanted (see the module).
    pub async fn take_pictures(&self, name: &str) {
        let Some(folder) = std::env::var_os(SCREENSHOTS).map(PathBuf::from) else {
            return;
        };
        std::fs::create_dir_all(&folder).expect(OBEYS);
        for (screen, width, height, is_phone) in SCREENS {
            for light in ["light", "dark"] {
                self.set_light(light).await;
                self.set_screen(width, height, is_phone).await;
                let layout = self.command("Page.getLayoutMetrics", json!({})).await;
                let needed = layout["cssContentSize"]["height"].as_u64().expect(OBEYS);
                self.set_screen(width, height.max(needed), is_phone).await;
                let picture = self.page.screenshot().await.expect(OBEYS);
                let file = folder.join(format!("{name}-{screen}-{light}.png"));
                std::fs::write(file, picture).expect(OBEYS);
            }
        }
        self.command("Emulation.clearDeviceMetricsOverride", json!({}))
            .await;
        self.command("Emulation.setEmulatedMedia", json!({"features": []}))
            .await;
    }

    /// Sets the size of the screen in CSS pixels.
    pub async fn set_screen(&self, width: u64, height: u64, is_phone: bool) {
        let screen = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone,
        });
        self.command("Emulation.setDeviceMetricsOverride", screen)
            .await;
    }

    /// Sends a command that only Chromium knows.
    async fn command(&self, name: &'static str, parameters: Value) -> Value {
        self.try_command(name, parameters).await.expect(OBEYS)
    }

    async fn try_command(&self, name: &'static str, parameters: Value) -> Result<Value, CmdError> {
        let command = DevToolsCommand { name, parameters };
        self.page.issue_cmd(command).await
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // chromedriver ends when it is dropped, and would leave the browser behind.
        if let Some(id) = self.main_process {
            let _ = std::process::Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
    }
}

/// Command of the DevTools protocol, sent through chromedriver.
#[derive(Debug)]
struct DevToolsCommand {
    name: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevToolsCommand {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        let session = session.unwrap_or_default();
        base.join(&format!("session/{session}/goog/cdp/execute"))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        let body = json!({"cmd": self.name, "params": self.parameters});
        (Method::POST, Some(body.to_string()))
    }
}

fn capabilities(chromium: &Path, profile: &Path, setup: Setup) -> Capabilities {
    /// Value for "never" in Chromium's preferences.
    const BLOCK: u8 = 2;
    let mut flags: Vec<String> = FLAGS.map(str::to_owned).into();
    flags.push(format!("--user-data-dir={}", profile.display()));
    let preferences = match setup {
        Setup::Usual => json!({}),
        Setup::NoScript => json!({"profile.managed_default_content_settings.javascript": BLOCK}),
        Setup::NoCookies => json!({"profile.default_content_setting_values.cookies": BLOCK}),
    };
    let options = json!({"binary": chromium, "args": flags, "prefs": preferences});
    Capabilities::from_iter([
        ("browserName".to_owned(), json!("chrome")),
        ("goog:chromeOptions".to_owned(), options),
    ])
}

/// Starts chromedriver on a port of its choice, and reads that port.
async fn start_driver(program: &Path) -> (Child, u16) {
    let mut output = String::new();
    for _ in 0..DRIVER_STARTS_MAX {
        match try_start_driver(program).await {
            Ok(started) => return started,
            Err(last_words) => output = last_words,
        }
        if !output.contains("port not available") {
            break;
        }
    }
    panic!("chromedriver ended before it listened; output: {output}");
}

/// Starts chromedriver once; an error is all that it printed before it ended.
async fn try_start_driver(program: &Path) -> Result<(Child, u16), String> {
    let mut driver = Command::new(program)
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect(OBEYS);
    let mut lines = BufReader::new(driver.stdout.take().expect(OBEYS)).lines();
    let mut output = String::new();
    let port = async {
        while let Some(line) = lines.next_line().await.expect(OBEYS) {
            if let Some((_, rest)) = line.split_once("started successfully on port ") {
                return Some(rest.trim_end_matches('.').parse().expect(OBEYS));
            }
            output += &line;
            output.push('\n');
        }
        None
    };
    let port = tokio::time::timeout(TIMEOUT, port).await;
    let port = port.expect("chromedriver prints its port, or ends");
    // Read on, so that it never waits for a reader.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    port.map(|port| (driver, port)).ok_or(output)
}

/// Finds chromium and chromedriver.
fn programs() -> (PathBuf, PathBuf) {
    let chromium = on_path("chromium");
    let chromedriver = on_path("chromedriver");
    let (Some(chromium), Some(chromedriver)) = (&chromium, &chromedriver) else {
        let programs = [("chromium", &chromium), ("chromedriver", &chromedriver)];
        let missing = programs.iter().filter(|(_, found)| found.is_none());
        let missing: Vec<&str> = missing.map(|(name, _)| *name).collect();
        panic!(
            "browser tests need chromium and chromedriver on the path; missing: {}. `cargo xtask \
             test` installs them. By hand: `apt-get install chromium chromium-driver` in Debian, \
             `apt-get install chromium-browser chromium-chromedriver` in Ubuntu",
            missing.join(", ")
        );
    };
    (chromium.clone(), chromedriver.clone())
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(program));
    files.find(|file| file.is_file())
}
