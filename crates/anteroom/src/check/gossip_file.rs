//! Check of the secret file that `[gossip]` names.

use std::path::Path;

use anteroom_config::{Config, Finding, Problem};
use anteroom_gossip::Secret;
use anteroom_store::chain;

/// Returns what is wrong with the file. Makes its path independent of the current folder.
pub(crate) fn load(config: &mut Config, file: &Path) -> Option<String> {
    let gossip = config.limit_stores.gossip.as_mut()?;
    if let Some(folder) = file.parent() {
        gossip.secret_file = folder.join(&gossip.secret_file);
    }
    let error = Secret::read(&gossip.secret_file).err()?;
    Some(format!("{}: {}", file.display(), chain(&error)))
}

/// Returns a warning if every user can read the file.
pub(crate) fn open_to_all(name: &str, config: &Config) -> Option<Problem> {
    let gossip = config.limit_stores.gossip.as_ref()?;
    anteroom_proxy::downstream::tls::is_open_to_all(&gossip.secret_file).then(|| Problem {
        source: name.into(),
        line: None,
        column: None,
        owner: None,
        key: "gossip.secret_file".to_owned(),
        finding: Finding::Remark("every user of this machine can read the secret".to_owned()),
        allowed: String::new(),
        hint: Some("chmod 600".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_secret_file_is_relative_to_the_config_and_checked() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        let text = "[gossip]\nlisten = \"127.0.0.1:7946\"\nsecret_file = \"gossip\"\n\
                    [[room]]\nname = \"shop\"\norigin = \"http://a\"\ntotal_active_users = 1\n\
                    new_users_per_minute = 1\n";
        std::fs::write(&file, text).unwrap();
        let line = || crate::check::read(&file).unwrap_err().lines().remove(0);
        assert!(line().contains("cannot read"), "{}", line());
        let secret = folder.path().join("gossip");
        std::fs::write(&secret, "short\n").unwrap();
        assert!(line().contains("has 5 bytes"), "{}", line());
        std::fs::write(&secret, "0123456789abcdef\n").unwrap();
        let parsed = crate::check::read(&file).unwrap();
        assert_eq!(
            parsed.config.limit_stores.gossip.unwrap().secret_file,
            secret
        );
        #[cfg(unix)]
        for (mode, count) in [(0o600, 0), (0o644, 1)] {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(&secret, mode).unwrap();
            let warnings = crate::check::read(&file).unwrap().warnings;
            let of_it = warnings
                .iter()
                .filter(|warning| warning.key == "gossip.secret_file");
            assert_eq!(of_it.count(), count);
        }
    }
}
