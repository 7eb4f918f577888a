//! Who may change rooms? The tokens in the file that `server.admin_token_file` names, or the one that
//! was drawn for this data folder.

use std::path::Path;

use anteroom_check::files;
use anteroom_config::ServerConfig;
use anteroom_control::Token;
use anteroom_store::DataDir;
use anyhow::Context as _;

/// What the token is called that was drawn for the data folder.
const DRAWN: &str = "local";
/// A hundred of the longest tokens with their names fit in.
const BYTES_MAX: usize = 64 * 1_024;

/// The tokens that hold from now on.
///
/// # Errors
///
/// If the file cannot be read or holds something else; what it holds is not shown.
pub(crate) fn load(server: &ServerConfig, dir: &DataDir) -> anyhow::Result<Vec<Token>> {
    let Some(file) = &server.admin_token_file else {
        return Ok(vec![Token::new(DRAWN, &dir.admin_token()?)]);
    };
    of_file(file)
}

fn of_file(file: &Path) -> anyhow::Result<Vec<Token>> {
    let text = files::read_text_at_most(file, BYTES_MAX)
        .with_context(|| format!("cannot read {} (server.admin_token_file)", file.display()))?;
    Token::parse(&text).with_context(|| format!("{} (server.admin_token_file)", file.display()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_file_with_too_many_tokens_is_refused_and_not_cut() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let line = "night 0123456789abcdef0123456789abcdef\n";
        std::fs::write(
            &file,
            line.to_owned() + &"# why\n".repeat(super::BYTES_MAX / 6),
        )
        .unwrap();
        let said = format!("{:#}", super::of_file(file.path()).unwrap_err());
        assert!(said.contains("it is too large"), "{said}");
    }
}
