//! Instructions, allocations and system calls per request. Other work of the machine does not
//! change them.
//!
//! Each case runs twice under each tool, in a process of its own: with few requests and with many.
//! The difference is what the requests cost, so the start and the end do not count. Requests come
//! in waves: all connections send, then all responses are read.

mod figures;
mod profile;
mod tools;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde::{Deserialize, Serialize};

use crate::certificate::Certificate;
use crate::generator::{Headers, Pace, Protocol};
use crate::load::{CONNECTIONS, Generator, Load};
use crate::peers::{Course, FAST, Launcher, Peer, QUIET};
use crate::process::Process;
use crate::visitors::{bytes_of, cookies};
use crate::waiting::POLL_PATH;
use figures::Figures;
use profile::Profile;
use tools::{Tool, Totals};

/// Options of the counts.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Compare the gateway with the figures in a file, and fail if it is more than 5 % above.
    /// With `ANTEROOM_UPDATE=1`, write the file.
    #[arg(long, value_name = "FILE")]
    check: Option<PathBuf>,
    /// Waves of 64 requests that are counted; eight times as many for system calls.
    #[arg(long, value_name = "N", default_value_t = 50)]
    waves: u64,
    /// Print so many functions with the most instructions of their own, for each case.
    #[arg(long, value_name = "N", default_value_t = 0)]
    functions: usize,
}

/// Waves before those that are counted, to fill pools and caches.
const WARM_UP_WAVES: u64 = 5;

/// Counts of one request.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Counts {
    pub(crate) instructions: f64,
    pub(crate) mallocs: f64,
    /// System calls, without those that wait for sockets.
    pub(crate) system_calls: f64,
    /// System calls that wait for sockets. Their number depends on how many requests arrive
    /// together, so it differs from run to run and from load to load.
    pub(crate) waits: f64,
}

/// Proxy of a case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Gateway,
    FastPath,
    Nginx,
    Bare,
}

/// Visitors whose cookies are sent.
#[derive(Clone, Copy, Debug)]
enum Visitors {
    /// New visitors without a cookie.
    New,
    /// Visitors who requested the path of a course before.
    Of(Course),
}

/// Proxy and requests that are counted together.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    kind: Kind,
    path: &'static str,
    visitors: Visitors,
    protocol: Protocol,
    headers: Headers,
}

const THROUGH: Case = Case {
    name: "through, lean",
    kind: Kind::Gateway,
    path: Course::Through.path(),
    visitors: Visitors::Of(Course::Through),
    protocol: Protocol::Http1,
    headers: Headers::Lean,
};
const PAGE: Case = Case {
    name: "page of a template",
    path: Course::Page.path(),
    visitors: Visitors::New,
    ..THROUGH
};

const POLL: Case = Case {
    name: "poll",
    path: POLL_PATH,
    visitors: Visitors::Of(Course::OwnPage),
    ..THROUGH
};

const CASES: [Case; 15] = [
    THROUGH,
    Case {
        name: "through, browser",
        headers: Headers::Browser,
        ..THROUGH
    },
    Case {
        name: "through, lean, fast path",
        kind: Kind::FastPath,
        ..THROUGH
    },
    Case {
        name: "through, browser, fast path",
        kind: Kind::FastPath,
        headers: Headers::Browser,
        ..THROUGH
    },
    Case {
        name: "page of a template, fast path",
        kind: Kind::FastPath,
        ..PAGE
    },
    Case {
        name: "through, HTTP/2",
        protocol: Protocol::Http2,
        ..THROUGH
    },
    PAGE,
    Case {
        name: "own page",
        path: Course::OwnPage.path(),
        ..PAGE
    },
    Case {
        name: "own page in gzip, fast path",
        kind: Kind::FastPath,
        path: Course::OwnPage.path(),
        headers: Headers::Browser,
        ..PAGE
    },
    POLL,
    Case {
        name: "poll, fast path",
        kind: Kind::FastPath,
        ..POLL
    },
    Case {
        name: "nginx: through, lean",
        kind: Kind::Nginx,
        ..THROUGH
    },
    Case {
        name: "nginx: page of a template",
        kind: Kind::Nginx,
        ..PAGE
    },
    Case {
        name: "bare hyper: through, lean",
        kind: Kind::Bare,
        ..THROUGH
    },
    Case {
        name: "bare hyper: page of a template",
        kind: Kind::Bare,
        ..PAGE
    },
];

/// Counts of one case.
#[derive(Clone, Debug, Serialize)]
struct Row {
    name: &'static str,
    #[serde(flatten)]
    counts: Counts,
}

/// Counts all chosen cases, prints them, and compares them with the figures in a file.
#[expect(clippy::print_stdout, reason = "a tool that prints")]
pub(crate) async fn run(
    anteroom: &Path,
    only: Option<&str>,
    json: bool,
    options: &Options,
) -> anyhow::Result<()> {
    let shared = Shared::prepare(anteroom).await?;
    let mut rows = Vec::new();
    for case in CASES {
        // Packages of nginx differ between systems, so no file has its figures.
        let is_ours = matches!(case.kind, Kind::Gateway | Kind::FastPath);
        let is_compared = options.check.is_none() || is_ours;
        if is_compared && only.is_none_or(|part| case.name.contains(part)) {
            let counts = shared.count(&case, options).await?;
            rows.push(Row {
                name: case.name,
                counts,
            });
        }
    }
    if json {
        println!("{}", serde_json::to_string_pretty(&rows)?);
    } else {
        print!("{}", table(&rows));
    }
    let Some(file) = &options.check else {
        return Ok(());
    };
    let counted = rows.iter().map(|row| (row.name.to_owned(), row.counts));
    Figures::read(file)?.check(file, &counted.collect())
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| per request | instructions | mallocs | system calls | waits |\n\
         | --- | ---: | ---: | ---: | ---: |\n",
    );
    for Row { name, counts } in rows {
        text.push_str(&format!(
            "| {name} | {:.0} | {:.1} | {:.2} | {:.2} |\n",
            counts.instructions, counts.mallocs, counts.system_calls, counts.waits
        ));
    }
    text
}

/// Values that all cases share.
struct Shared<'a> {
    anteroom: &'a Path,
    page_bytes: [usize; 2],
    /// Cookies for other proxies, so that they read the same headers.
    cookies: Vec<String>,
}

impl<'a> Shared<'a> {
    async fn prepare(anteroom: &'a Path) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let launcher = Launcher {
            folder: folder.path(),
            certificate: None,
            wrapper: &[],
        };
        let (_origin, origin) = launcher.origin().await?;
        let peer = launcher
            .gateway("anteroom", anteroom, QUIET, origin)
            .await?;
        Ok(Self {
            anteroom,
            page_bytes: [
                bytes_of(&peer, Course::Page.path()).await?,
                bytes_of(&peer, Course::OwnPage.path()).await?,
            ],
            cookies: cookies(&peer, Course::Through.path(), CONNECTIONS).await?,
        })
    }

    async fn count(&self, case: &Case, options: &Options) -> anyhow::Result<Counts> {
        let mut per_request = [Totals::default(), Totals::default()];
        for (tool, per_request) in [Tool::Callgrind, Tool::Strace]
            .into_iter()
            .zip(&mut per_request)
        {
            eprintln!("{}: {}", case.name, tool.program());
            let run = async |waves| {
                let totals = self.totals(case, tool, waves).await;
                totals.with_context(|| format!("{} under {}", case.name, tool.program()))
            };
            let waves = options.waves.max(1) * tool.repeats();
            let (few, profile) = run(WARM_UP_WAVES).await?;
            let (many, profile_of_many) = run(WARM_UP_WAVES + waves).await?;
            let requests = (waves * CONNECTIONS as u64) as f64;
            *per_request = few.until(&many).each(requests);
            let profile = profile.until(&profile_of_many, requests);
            eprint!("{}", profile.table(options.functions));
        }
        let [callgrind, strace] = per_request;
        Ok(Counts {
            instructions: callgrind.instructions,
            mallocs: callgrind.mallocs,
            system_calls: strace.system_calls,
            waits: strace.waits,
        })
    }

    /// Runs a case from the start of its proxy to the end.
    async fn totals(
        &self,
        case: &Case,
        tool: Tool,
        waves: u64,
    ) -> anyhow::Result<(Totals, Profile)> {
        let folder = tempfile::tempdir()?;
        let output = folder.path().join("counts");
        let certificate = match case.protocol {
            Protocol::Http1 => None,
            Protocol::Tls | Protocol::Http2 => Some(Certificate::create(folder.path())?),
        };
        let launcher = Launcher {
            folder: folder.path(),
            certificate: certificate.as_ref(),
            wrapper: &tool.wrapper(&output),
        };
        let (_origin, mut peer) = self.start(case, launcher).await?;
        let cookies = match (case.visitors, case.kind) {
            (Visitors::New, _) => vec![String::new()],
            (Visitors::Of(course), Kind::Gateway | Kind::FastPath) => {
                cookies(&peer, course.path(), CONNECTIONS).await?
            }
            (Visitors::Of(_), _) => self.cookies.clone(),
        };
        let mut generator = Generator::start(&Load {
            address: peer.address,
            path: case.path,
            cookies: &cookies,
            connections: CONNECTIONS,
            protocol: case.protocol,
            headers: case.headers,
            certificate: peer.certificate.as_deref(),
        })
        .await?;
        generator.send(Pace::Waves(waves)).await?;
        generator.end().await?;
        peer.process.end().await?;
        tool.read(&output).await
    }

    async fn start(&self, case: &Case, launcher: Launcher<'_>) -> anyhow::Result<(Process, Peer)> {
        let (process, origin) = launcher.origin().await?;
        let peer = match case.kind {
            Kind::Gateway => {
                launcher
                    .gateway("anteroom", self.anteroom, QUIET, origin)
                    .await?
            }
            Kind::FastPath => {
                launcher
                    .gateway("anteroom", self.anteroom, FAST, origin)
                    .await?
            }
            Kind::Nginx => launcher.nginx(origin, self.page_bytes).await?,
            Kind::Bare => launcher.bare(origin, self.page_bytes).await?,
        };
        Ok((process, peer))
    }
}
