//! Check of the limit files of the rate limit service.
//!
//! The store itself checks at the start whether it can enforce a limit.

use std::path::Path;

use anteroom_config::Config;
use anteroom_envoy::folder;

/// Returns every mistake, one a line; none without such a service. The folder is relative to the
/// config file.
pub(crate) fn mistakes(config: &Config, file: &Path) -> Vec<String> {
    let Some(service) = &config.rate_limit_service else {
        return Vec::new();
    };
    let folder = file.parent().map_or_else(
        || service.config_dir.clone(),
        |parent| parent.join(&service.config_dir),
    );
    let read = folder::read(&folder, service.merge_domains, None);
    read.err().map(|error| error.lines()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn mistakes_in_limit_files_are_reported_with_the_config() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("anteroom.toml");
        let text = "[rate_limit_service]\ngrpc = \"127.0.0.1:0\"\nconfig_dir = \"limits\"\n\
                    [[room]]\nname = \"shop\"\norigin = \"http://a\"\ntotal_active_users = 1\n\
                    new_users_per_minute = 1\n";
        std::fs::write(&file, text).unwrap();
        let lines = crate::check::read(&file).unwrap_err().lines();
        assert!(lines[0].contains("cannot read the folder"), "{lines:?}");
        let limits = folder.path().join("limits");
        std::fs::create_dir(&limits).unwrap();
        assert!(crate::check::read(&file).is_ok());
        let yaml = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: fortnight}\n";
        std::fs::write(limits.join("a.yaml"), yaml).unwrap();
        let lines = crate::check::read(&file).unwrap_err().lines();
        assert_eq!(lines.len(), 1);
        assert!(
            lines[0].contains("limits/a.yaml:4: invalid rate limit unit"),
            "{lines:?}"
        );
    }
}
