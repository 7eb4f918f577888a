//! Who may change rooms? The tokens in the file that `server.admin_token_file` names, or the one
//! that was drawn for this data folder.

use crate::check::token_file;
use anteroom_admin::Token;
use anteroom_config::ServerConfig;
use anteroom_embedded::DataDir;

/// What the token is called that was drawn for the data folder.
const DRAWN: &str = "local";

/// The tokens that hold from now on.
///
/// # Errors
///
/// If the file cannot be read or holds something else; what it holds is not shown.
pub(crate) fn load(server: &ServerConfig, dir: &DataDir) -> anyhow::Result<Vec<Token>> {
    let Some(file) = &server.admin_token_file else {
        return Ok(vec![Token::new(DRAWN, &dir.admin_token()?)]);
    };
    Ok(token_file::load(file)?)
}
