//! Who may change rooms? The tokens in the file that `server.admin_token_file` names, or the one that
//! was drawn for this data folder.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anteroom_config::ServerConfig;
use anteroom_control::Token;
use anteroom_store::DataDir;
use anyhow::Context as _;

/// What the token is called that was drawn for the data folder.
const DRAWN: &str = "local";
/// A hundred of the longest tokens with their names fit in.
const BYTES_MAX: u64 = 64 * 1_024;

/// The tokens that hold from now on.
///
/// # Errors
///
/// If the file cannot be read or holds something else; what it holds is not shown.
pub(crate) fn load(server: &ServerConfig, dir: &DataDir) -> anyhow::Result<Vec<Token>> {
    let Some(file) = &server.admin_token_file else {
        return Ok(vec![Token::new(DRAWN, &dir.admin_token()?)]);
    };
    let text = read(file)
        .with_context(|| format!("cannot read {} (server.admin_token_file)", file.display()))?;
    Token::parse(&text).with_context(|| format!("{} (server.admin_token_file)", file.display()))
}

fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(file)?.take(BYTES_MAX);
    file.read_to_string(&mut text)?;
    Ok(text)
}
