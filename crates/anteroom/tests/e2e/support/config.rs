//! Config files of gateways, in folders of their own.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use tempfile::TempDir;

/// `[server]` on ports that the system chooses; the data folder is next to the file.
pub(crate) const SERVER: &str = "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n";

/// Config file and its folder; removed when dropped.
pub(crate) struct ConfigFile {
    folder: TempDir,
}

impl ConfigFile {
    pub(crate) fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = Self { folder };
        file.write(text);
        file
    }

    /// Changes the file.
    pub(crate) fn write(&self, text: &str) {
        std::fs::write(self.path(), text).unwrap();
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("anteroom.toml")
    }

    /// Returns the flags of `serve` that name this file.
    pub(crate) fn flags(&self) -> Vec<String> {
        vec!["--config".to_owned(), self.path().display().to_string()]
    }
}

/// Returns a `[[room]]` that covers every host, with more lines of TOML.
pub(crate) fn room(name: &str, origin: SocketAddr, total: u32, more: &str) -> String {
    let mut text = format!(
        "[[room]]\nname = \"{name}\"\norigin = \"http://{origin}\"\n\
         total_active_users = {total}\n"
    );
    for (key, default) in [("new_users_per_minute", "100000"), ("bypass", "[]")] {
        if !more.contains(key) {
            writeln!(text, "{key} = {default}").unwrap();
        }
    }
    text + more + "\n"
}
