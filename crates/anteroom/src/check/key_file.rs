//! Loader of the file that `jwt.keys_file` names.
//!
//! It is read with the configuration, so that `anteroom check` and a SIGHUP see its present
//! contents.

use std::path::Path;

use anteroom_config::{Config, JwtKeys};
use anteroom_limit_http::jwt::{FILE_BYTES_MAX, KeySet};

use crate::check::files;

/// Replaces the path of the keys by the keys, and returns every mistake, one a line. The path is
/// relative to the folder of the config file.
pub(crate) fn load(config: &mut Config, config_file: &Path) -> Vec<String> {
    let Some(jwt) = &mut config.jwt else {
        return Vec::new();
    };
    let JwtKeys::File { path, line } = &jwt.keys else {
        return Vec::new();
    };
    let path = config_file
        .parent()
        .map_or_else(|| path.clone(), |folder| folder.join(path));
    let text = match files::read_at_most(&path, FILE_BYTES_MAX) {
        Ok(text) => text,
        Err(error) => {
            let (config, path) = (config_file.display(), path.display());
            return vec![format!(
                "{config}:{line}: jwt.keys_file: cannot read {path}: {error}"
            )];
        }
    };
    let mistakes = match KeySet::parse(&text) {
        Ok(_) => Vec::new(),
        Err(mistakes) => {
            let path = path.display();
            let lines = mistakes.iter();
            lines
                .map(|mistake| format!("{path}: jwt.keys_file: {mistake}"))
                .collect()
        }
    };
    jwt.keys = JwtKeys::Text(text);
    mistakes
}

#[cfg(test)]
mod tests {
    use anteroom_config::Parsed;

    use crate::check::read;

    const CONFIG: &str = "[[room]]\nname = \"shop\"\norigin = \"http://127.0.0.1:9\"\n\
                          total_active_users = 1\nnew_users_per_minute = 1\n\
                          bypass = []\n[jwt]\nkeys_file = \"keys.json\"\n";

    #[test]
    fn the_key_file_is_relative_to_the_config_and_fully_checked() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("anteroom.toml");
        let keys = folder.path().join("keys.json");
        std::fs::write(&config, CONFIG).unwrap();
        let mistakes = || read(&config).unwrap_err().lines();
        let (config_name, keys_name) = (config.display(), keys.display());
        assert_eq!(mistakes().len(), 1);
        let start = format!("{config_name}:8: jwt.keys_file: cannot read {keys_name}: ");
        assert!(mistakes()[0].starts_with(&start), "{:?}", mistakes());
        std::fs::write(
            &keys,
            r#"{"keys": [{"kty": "x"}, {"kty": "oct", "k": "s3cret"}]}"#,
        )
        .unwrap();
        assert_eq!(
            mistakes(),
            [
                format!(
                    "{keys_name}: jwt.keys_file: key 1: kty: found \"x\", allowed: \"RSA\", \
                     \"EC\" or \"OKP\""
                ),
                format!(
                    "{keys_name}: jwt.keys_file: key 2: kty: found a private key or a secret, \
                     allowed: public keys \
                     only; a verifier needs no private key"
                ),
            ]
        );
        // From RFC 8037, A.2.
        let key = r#"{"kty": "OKP", "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
        std::fs::write(&keys, format!("{{\"keys\": [{key}]}}")).unwrap();
        let Parsed { config, warnings } = read(&config).unwrap();
        assert!(warnings.is_empty() && config.jwt.is_some());
    }
}
