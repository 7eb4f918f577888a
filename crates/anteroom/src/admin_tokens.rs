//! Tokens of operators: those in the file that `server.admin_token_file` names, or the one that was
//! generated for this data folder.

use crate::check::token_file;
use anteroom_admin::Token;
use anteroom_config::ServerConfig;
use anteroom_embedded::DataDir;

/// Name of the token that is generated for the data folder.
const GENERATED: &str = "local";

/// Loads the valid tokens.
///
/// # Errors
///
/// If the file cannot be read or holds something else; its contents are not shown.
pub(crate) fn load(server: &ServerConfig, dir: &DataDir) -> anyhow::Result<Vec<Token>> {
    let Some(file) = &server.admin_token_file else {
        return Ok(vec![Token::new(GENERATED, &dir.admin_token()?)]);
    };
    Ok(token_file::load(file)?)
}
