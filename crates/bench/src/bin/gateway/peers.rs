//! Peers of a race: the gateway, its other builds, hyper alone, nginx and haproxy, all before one
//! origin.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::Context as _;
use tempfile::TempDir;

use crate::process::{OF_OTHERS, OF_PROXIES, Process, find, free_port};
use crate::visitors::LoadGenerator;

/// Size of the origin's response.
const ORIGIN_BYTES: usize = 1_024;
/// Size of the template of a page of six KiB.
const TEMPLATE_BYTES: usize = 6_144;
/// Longest token in an nginx configuration, with some margin.
const NGINX_TOKEN_BYTES: usize = 3_000;

/// Log level without a line per request, like the other peers.
pub(crate) const QUIET: &str = "warn";

/// Kind of requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Course {
    /// Requests of active visitors go through to the origin.
    Through,
    /// New visitors get a page of about six KiB, from an operator's template, and a ticket.
    Page,
    /// New visitors get the gateway's own page, and a ticket.
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

/// Another build of the gateway.
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

/// Threads of the bare peer's connections.
#[derive(Clone, Copy, Debug)]
enum Threads {
    /// Each connection stays on the thread that accepted it.
    Own,
    /// Connections move between the threads of tokio's default runtime.
    Shared,
}

/// Proxy that is ready to be measured.
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) process: Process,
    /// Visitors of a gateway of any build, which needs their cookies; `None` for other proxies.
    pub(crate) visitors: Option<LoadGenerator>,
}

/// All peers and the origin.
pub(crate) struct Stage {
    pub(crate) peers: Vec<Peer>,
    /// Sizes of the gateway's pages; other peers respond with as many bytes.
    pub(crate) page_bytes: [usize; 2],
    _origin: Process,
    _folder: TempDir,
}

impl Stage {
    /// Starts the gateway first, then the other peers with pages of the same size.
    pub(crate) async fn start(anteroom: &Path, also: &[Also]) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let launcher = Launcher {
            folder: folder.path(),
        };
        let (origin_process, origin) = launcher.origin().await?;
        let mut peers = vec![
            launcher
                .gateway("anteroom", anteroom, QUIET, origin)
                .await?,
            launcher
                .gateway("anteroom, access log", anteroom, "info", origin)
                .await?,
        ];
        for Also { name, program } in also {
            let name = format!("anteroom ({name})");
            peers.push(launcher.gateway(&name, program, QUIET, origin).await?);
        }
        let first = peers[0].address;
        let page_bytes = [
            LoadGenerator::bytes_of(first, Course::Page.path()).await?,
            LoadGenerator::bytes_of(first, Course::OwnPage.path()).await?,
        ];
        for kind in [Threads::Own, Threads::Shared] {
            peers.push(launcher.bare(origin, page_bytes, kind).await?);
        }
        peers.push(launcher.nginx(origin, page_bytes).await?);
        if let Some(program) = find("haproxy") {
            peers.push(launcher.haproxy(&program, origin, page_bytes).await?);
        }
        Ok(Self {
            peers,
            page_bytes,
            _origin: origin_process,
            _folder: folder,
        })
    }
}

/// Starter of processes in a folder.
pub(crate) struct Launcher<'a> {
    pub(crate) folder: &'a Path,
}

impl Launcher<'_> {
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
        let program = find("nginx").context("nginx is not installed")?;
        self.start(name, processor, &program, &arguments, address)
            .await
    }

    /// Starts a gateway with a room that never fills, and two that queue every visitor.
    pub(crate) async fn gateway(
        &self,
        name: &str,
        program: &Path,
        log: &str,
        origin: SocketAddr,
    ) -> anyhow::Result<Peer> {
        let (address, admin) = (local()?, local()?);
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let text = config(address, admin, &file, origin);
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
            visitors: Some(LoadGenerator::new(address)),
        })
    }

    async fn bare(
        &self,
        origin: SocketAddr,
        bytes: [usize; 2],
        threads: Threads,
    ) -> anyhow::Result<Peer> {
        let address = local()?;
        let (listen, origin) = (address.to_string(), origin.to_string());
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
                "bare hyper, shared threads"
            }
        };
        let program = std::env::current_exe().context("a running program has a path")?;
        let process = self
            .start(name, OF_PROXIES, &program, &arguments, address)
            .await?;
        Ok(peer(name, address, process))
    }

    async fn nginx(&self, origin: SocketAddr, bytes: [usize; 2]) -> anyhow::Result<Peer> {
        let address = local()?;
        let http = format!(
            "upstream origin {{ server {origin}; keepalive 128; keepalive_requests 100000000; }}"
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
        origin: SocketAddr,
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
             backend origin\n  server origin {origin} pool-max-conn -1\n"
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
        visitors: None,
    }
}

fn local() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}

fn config(address: SocketAddr, admin: SocketAddr, data: &str, origin: SocketAddr) -> String {
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
    for (name, course, settings) in rooms {
        write!(
            text,
            "[[room]]\nname = \"{name}\"\npath = \"{}\"\norigin = \"http://{origin}\"\n\
             total_active_users = 100000\nnew_users_per_minute = 100000\n\
             session_duration = \"1h\"\n\
             bypass = []\n{settings}",
            course.path()
        )
        .expect("writing to a String does not fail");
    }
    text
}

/// Returns a template like an operator's page: mostly text and styles, with some values per
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
    fn a_build_has_a_name_and_a_file() {
        let also: Also = "mimalloc=target/x".parse().unwrap();
        assert_eq!(
            (also.name.as_str(), also.program),
            ("mimalloc", "target/x".into())
        );
        assert!("target/x".parse::<Also>().is_err());
    }

    #[test]
    fn the_template_has_the_stated_length() {
        assert!((TEMPLATE_BYTES - 20..=TEMPLATE_BYTES).contains(&template().len()));
    }
}
