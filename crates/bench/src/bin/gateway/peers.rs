//! Who races: the gateway, its other builds, hyper alone, nginx and haproxy, all before one origin.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use tempfile::TempDir;

use crate::crowd::LoadGenerator;
use crate::process::{OF_OTHERS, OF_PROXIES, Process, find, free_port};

/// What the origin answers.
const ORIGIN_BYTES: usize = 1_024;
/// How large the template is that stands for a page of six KiB.
const TEMPLATE_BYTES: usize = 6_144;
/// A token of an nginx configuration must not be much longer.
const NGINX_TOKEN_BYTES: usize = 3_000;

/// The others write no line for each request either.
pub(crate) const QUIET: &str = "warn";

/// What is asked for, and what answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Course {
    /// Visitors who are inside go through to the origin.
    Through,
    /// Newcomers get a page of about six KiB: an operator's template, and a ticket.
    Page,
    /// Newcomers get the gateway's own page, and a ticket.
    OwnPage,
}

impl Course {
    pub(crate) const ALL: [Self; 3] = [Self::Through, Self::Page, Self::OwnPage];

    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::Through => "/",
            Self::Page => "/page",
            Self::OwnPage => "/own",
        }
    }
}

/// One more build of the gateway.
#[derive(Clone, Debug)]
pub(crate) struct Also {
    name: String,
    program: PathBuf,
}

impl FromStr for Also {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, program) = text.split_once('=').ok_or("NAME=FILE is expected")?;
        Ok(Self {
            name: name.to_owned(),
            program: program.into(),
        })
    }
}

/// Where the bare peer's connections live.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// Each on the thread where it was accepted.
    Own,
    /// On any, by tokio's usual runtime.
    Shared,
}

/// A proxy, ready to be measured.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    /// Whether it is the gateway, in any build: it needs its own visitors' cookies.
    pub(crate) crowd: Option<LoadGenerator>,
}

/// Everybody.
pub(crate) struct Stage {
    pub(crate) peers: Vec<Peer>,
    /// How long the gateway's pages are, which others answer with as many bytes.
    pub(crate) page_bytes: [usize; 2],
    _origin: Process,
    _folder: TempDir,
}

impl Stage {
    /// Starts the gateway first, then everybody else with pages of the same length.
    pub(crate) async fn start(anteroom: &Path, also: &[Also]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let nursery = Nursery {
            folder: folder.path(),
        };
        let (origin, behind) = nursery.origin().await?;
        let mut peers = vec![
            nursery.gateway("anteroom", anteroom, QUIET, behind).await?,
            nursery
                .gateway("anteroom, a line of log each", anteroom, "info", behind)
                .await?,
        ];
        for Also { name, program } in also {
            let name = format!("anteroom ({name})");
            peers.push(nursery.gateway(&name, program, QUIET, behind).await?);
        }
        let first = peers[0].address;
        let page_bytes = [
            LoadGenerator::bytes_of(first, Course::Page.path()).await?,
            LoadGenerator::bytes_of(first, Course::OwnPage.path()).await?,
        ];
        for kind in [Threads::Own, Threads::Shared] {
            peers.push(nursery.bare(behind, page_bytes, kind).await?);
        }
        peers.push(nursery.nginx(behind, page_bytes).await?);
        if let Some(program) = find("haproxy") {
            peers.push(nursery.haproxy(&program, behind, page_bytes).await?);
        }
        Ok(Self {
            peers,
            page_bytes,
            _origin: origin,
            _folder: folder,
        })
    }
}

/// Where processes are started.
pub(crate) struct Nursery<'a> {
    pub(crate) folder: &'a Path,
}

impl Nursery<'_> {
    fn write(&self, name: &str, text: &str) -> anyhow::Result<PathBuf> {
        let path = self.folder.join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    async fn start(
        &self,
        name: &str,
        processor: &str,
        program: &Path,
        arguments: &[&str],
        address: SocketAddr,
    ) -> anyhow::Result<Process> {
        let log = self.folder.join(format!("{name}.log"));
        let mut process = Process::start(processor, program, arguments, &log)?;
        process.until_listening(address, &log).await?;
        Ok(process)
    }

    async fn origin(&self) -> anyhow::Result<(Process, SocketAddr)> {
        let address = local()?;
        let body = "o".repeat(ORIGIN_BYTES);
        let server = format!("location / {{ return 200 \"{body}\"; }}");
        let process = self
            .start_nginx("origin", OF_OTHERS, address, "", &server)
            .await?;
        Ok((process, address))
    }

    async fn start_nginx(
        &self,
        name: &str,
        processor: &str,
        address: SocketAddr,
        http: &str,
        server: &str,
    ) -> anyhow::Result<Process> {
        let config = format!(
            "daemon off; worker_processes 1; pid {name}.pid; error_log stderr error;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; default_type text/html; keepalive_requests 100000000;\n\
             {http}\n\
             server {{ listen {address}; {server} }} }}\n"
        );
        let config = self.write(&format!("{name}.conf"), &config)?;
        let folder = format!("{}/", self.folder.display());
        let config = config.display().to_string();
        let arguments = ["-p", &folder, "-c", &config];
        let program = find("nginx").context("nginx is not here")?;
        self.start(name, processor, &program, &arguments, address)
            .await
    }

    /// A gateway with a room in which there is place for everybody, and two in which there is none.
    pub(crate) async fn gateway(
        &self,
        name: &str,
        program: &Path,
        log: &str,
        behind: SocketAddr,
    ) -> anyhow::Result<Peer> {
        let (address, admin) = (local()?, local()?);
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let text = config(address, admin, &file, behind);
        let config = self.write(&format!("{file}.toml"), &text)?;
        let config = config.display().to_string();
        let arguments = ["serve", "--config", &config, "--log", log];
        let process = self
            .start(&file, OF_PROXIES, program, &arguments, address)
            .await?;
        Ok(Peer {
            name: name.to_owned(),
            address,
            process,
            crowd: Some(LoadGenerator::new(address)),
        })
    }

    async fn bare(
        &self,
        behind: SocketAddr,
        bytes: [usize; 2],
        threads: Threads,
    ) -> anyhow::Result<Peer> {
        let address = local()?;
        let (listen, origin) = (address.to_string(), behind.to_string());
        let [page, own] = bytes.map(|bytes| bytes.to_string());
        let mut arguments = vec![
            "bare",
            "--listen",
            &listen,
            "--origin",
            &origin,
            "--page-bytes",
            &page,
            "--own-bytes",
            &own,
        ];
        let name = match threads {
            Threads::Own => "bare hyper",
            Threads::Shared => {
                arguments.push("--wandering");
                "bare hyper, wandering"
            }
        };
        let program = std::env::current_exe().context("a running program has a path")?;
        let process = self
            .start(name, OF_PROXIES, &program, &arguments, address)
            .await?;
        Ok(peer(name, address, process))
    }

    async fn nginx(&self, behind: SocketAddr, bytes: [usize; 2]) -> anyhow::Result<Peer> {
        let address = local()?;
        let http = format!(
            "upstream origin {{ server {behind}; keepalive 128; keepalive_requests 100000000; }}"
        );
        let mut server = String::from(
            "location / { proxy_pass http://origin; proxy_http_version 1.1; \
             proxy_set_header Connection \"\"; proxy_set_header Host $host; }\n",
        );
        for (course, bytes) in [Course::Page, Course::OwnPage].into_iter().zip(bytes) {
            let name = course.path().trim_start_matches('/');
            let mut whole = String::new();
            for (index, start) in (0..bytes).step_by(NGINX_TOKEN_BYTES).enumerate() {
                let part = "x".repeat(NGINX_TOKEN_BYTES.min(bytes - start));
                writeln!(server, "set ${name}{index} \"{part}\";")?;
                write!(whole, "${{{name}{index}}}")?;
            }
            writeln!(
                server,
                "location {} {{ add_header Cache-Control no-store; return 200 \"{whole}\"; }}",
                course.path()
            )?;
        }
        let process = self
            .start_nginx("nginx", OF_PROXIES, address, &http, &server)
            .await?;
        Ok(peer("nginx", address, process))
    }

    async fn haproxy(
        &self,
        program: &Path,
        behind: SocketAddr,
        bytes: [usize; 2],
    ) -> anyhow::Result<Peer> {
        let address = local()?;
        let mut pages = String::new();
        for (course, bytes) in [Course::Page, Course::OwnPage].into_iter().zip(bytes) {
            let name = course.path().trim_start_matches('/');
            let file = self.write(&format!("{name}.html"), &"x".repeat(bytes))?;
            writeln!(
                pages,
                "  http-request return status 200 content-type text/html hdr cache-control \
                 no-store \
                 file {} if {{ path {} }}",
                file.display(),
                course.path()
            )?;
        }
        let config = format!(
            "global\n  nbthread 1\n  maxconn 4096\n  tune.bufsize 32768\n\
             defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server \
             60s\n  http-reuse always\n\
             frontend front\n  bind {address}\n{pages}  default_backend origin\n\
             backend origin\n  server origin {behind} pool-max-conn -1\n"
        );
        let config = self.write("haproxy.cfg", &config)?;
        let config = config.display().to_string();
        let process = self
            .start("haproxy", OF_PROXIES, program, &["-f", &config], address)
            .await?;
        Ok(peer("haproxy", address, process))
    }
}

fn peer(name: &str, address: SocketAddr, process: Process) -> Peer {
    Peer {
        name: name.to_owned(),
        address,
        process,
        crowd: None,
    }
}

fn local() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

fn config(address: SocketAddr, admin: SocketAddr, data: &str, behind: SocketAddr) -> String {
    let mut text = format!(
        "[server]\nlisten = \"{address}\"\nadmin = \"{admin}\"\ndata_dir = \"data-{data}\"\n\
         [server.size_limits]\nconnections = 4096\n"
    );
    let rooms = [
        ("main", Course::Through, String::new()),
        (
            "page",
            Course::Page,
            format!("queue_all = true\ncustom_page_html = '{}'\n", template()),
        ),
        ("own", Course::OwnPage, "queue_all = true\n".to_owned()),
    ];
    for (name, course, more) in rooms {
        write!(
            text,
            "[[room]]\nname = \"{name}\"\npath = \"{}\"\norigin = \"http://{behind}\"\n\
             total_active_users = 100000\nnew_users_per_minute = 100000\n\
             session_duration = \"1h\"\n\
             bypass = []\n{more}",
            course.path()
        )
        .expect("a String takes all that is written to it");
    }
    text
}

/// As an operator's page would be: mostly text and styles, and what changes from visitor to
/// visitor.
fn template() -> String {
    let head = "<!doctype html><html lang=\"{{language}}\"><title>{{heading}}</title><style>";
    let body = "</style><h1>{{heading}}</h1><p>{{reasonText}}</p><p>{{waitTime}}</p></html>";
    let styles = "p{margin:1em}".repeat((TEMPLATE_BYTES - head.len() - body.len()) / 13);
    format!("{head}{styles}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_named_with_its_file() {
        let also: Also = "mimalloc=target/x".parse().unwrap();
        assert_eq!(
            (also.name.as_str(), also.program),
            ("mimalloc", "target/x".into())
        );
        assert!("target/x".parse::<Also>().is_err());
    }

    #[test]
    fn the_template_is_as_long_as_it_is_called() {
        assert!((TEMPLATE_BYTES - 20..=TEMPLATE_BYTES).contains(&template().len()));
    }
}
