//! Starter of the peers and the origin.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{Peer, Settings, configs};
use crate::certificate::Certificate;
use crate::process::{OF_OTHERS, OF_PROXIES, Process, find, free_port};

/// Starter of processes in a folder.
#[derive(Clone, Copy)]
pub(crate) struct Launcher<'a> {
    pub(crate) folder: &'a Path,
    /// Certificate of all proxies, if they use TLS.
    pub(crate) certificate: Option<&'a Certificate>,
    /// Program and arguments that run a proxy, such as valgrind; empty if it runs by itself.
    pub(crate) wrapper: &'a [String],
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
        program: &Path,
        arguments: &[&str],
        address: SocketAddr,
    ) -> anyhow::Result<Peer> {
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let log = self.folder.join(format!("{file}.log"));
        let mut process = if let [wrapper, rest @ ..] = self.wrapper {
            let program = program.display().to_string();
            let rest = rest.iter().map(String::as_str);
            let all: Vec<&str> = rest
                .chain([program.as_str()])
                .chain(arguments.iter().copied())
                .collect();
            let wrapper = find(wrapper).with_context(|| format!("{wrapper} is not installed"))?;
            Process::start(OF_PROXIES, &wrapper, &all, &log)?
        } else {
            Process::start(OF_PROXIES, program, arguments, &log)?
        };
        process.until_listening(address, &log).await?;
        Ok(Peer {
            name: name.to_owned(),
            address,
            process,
            is_gateway: false,
            certificate: self.certificate.map(|files| files.certificate.clone()),
        })
    }

    /// Starts the origin, which is nginx without TLS.
    pub(crate) async fn origin(&self) -> anyhow::Result<(Process, SocketAddr)> {
        let address = local()?;
        let text = configs::origin(address);
        let config = self.write("origin.conf", &text)?;
        let (folder, config) = (self.folder_text(), config.display().to_string());
        let log = self.folder.join("origin.log");
        let arguments = ["-p", &folder, "-c", &config];
        let mut process = Process::start(OF_OTHERS, &nginx_program()?, &arguments, &log)?;
        process.until_listening(address, &log).await?;
        Ok((process, address))
    }

    fn folder_text(&self) -> String {
        format!("{}/", self.folder.display())
    }

    /// Starts a gateway with a room that never fills, and two that queue every visitor.
    pub(crate) async fn gateway(
        &self,
        name: &str,
        program: &Path,
        settings: Settings,
        origin: SocketAddr,
    ) -> anyhow::Result<Peer> {
        let (address, admin) = (local()?, local()?);
        let file: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let text = configs::gateway(
            (address, admin),
            (&file, settings.fast_path),
            origin,
            self.certificate,
        );
        let config = self.write(&format!("{file}.toml"), &text)?;
        let config = config.display().to_string();
        let arguments = ["serve", "--config", &config, "--log", settings.log];
        let peer = self.start(name, program, &arguments, address).await?;
        Ok(Peer {
            is_gateway: true,
            ..peer
        })
    }

    pub(crate) async fn bare(&self, origin: SocketAddr, bytes: [usize; 2]) -> anyhow::Result<Peer> {
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
        let files = self
            .certificate
            .map(|files| [&files.certificate, &files.key].map(|path| path.display().to_string()));
        if let Some([certificate, key]) = &files {
            arguments.extend(["--certificate", certificate, "--key", key]);
        }
        let program = std::env::current_exe().context("a running program has a path")?;
        self.start("bare hyper", &program, &arguments, address)
            .await
    }

    pub(crate) async fn nginx(
        &self,
        origin: SocketAddr,
        bytes: [usize; 2],
    ) -> anyhow::Result<Peer> {
        let address = local()?;
        // A wrapper measures one process.
        let has_master = self.wrapper.is_empty();
        let text = configs::nginx(address, origin, bytes, self.certificate, has_master);
        let config = self.write("nginx.conf", &text)?;
        let (folder, config) = (self.folder_text(), config.display().to_string());
        let arguments = ["-p", &folder, "-c", &config];
        self.start("nginx", &nginx_program()?, &arguments, address)
            .await
    }

    pub(crate) async fn haproxy(
        &self,
        program: &Path,
        origin: SocketAddr,
        bytes: [usize; 2],
    ) -> anyhow::Result<Peer> {
        let address = local()?;
        let [page, own] = bytes.map(|bytes| "x".repeat(bytes));
        let pages = [
            self.write("page.html", &page)?,
            self.write("own.html", &own)?,
        ];
        let text = configs::haproxy(address, origin, &pages, self.certificate);
        let config = self.write("haproxy.cfg", &text)?;
        let config = config.display().to_string();
        self.start("haproxy", program, &["-f", &config], address)
            .await
    }
}

fn nginx_program() -> anyhow::Result<PathBuf> {
    find("nginx").context("nginx is not installed")
}

fn local() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from(([127, 0, 0, 1], free_port()?)))
}
