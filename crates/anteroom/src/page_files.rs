//! What stands in the files that `custom_page_file` names?
//!
//! Read when the configuration is, so that `anteroom check` and a SIGHUP see what is in them now.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anteroom_config::{Config, PageTemplate, RoomConfig};
use anteroom_page::CustomPage;

/// A little more than the largest template, so that a larger one is noticed and a device without end is
/// not read for ever.
const ENOUGH: u64 = 1_048_576 + 1;

/// Puts the text of each room's template file in its place. Paths are relative to the folder of the
/// config file.
///
/// # Errors
///
/// Every mistake, one a line: a file that cannot be read with the line of the config file that names
/// it, a mistake in a template with its own file and line.
pub(crate) fn load(config: &mut Config, config_file: &Path) -> Result<(), Vec<String>> {
    let mut mistakes = Vec::new();
    for room in &mut config.rooms {
        if let Err(more) = load_one(room, config_file) {
            mistakes.extend(more);
        }
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(mistakes)
    }
}

fn load_one(room: &mut RoomConfig, config_file: &Path) -> Result<(), Vec<String>> {
    let Some(PageTemplate::File { path, line }) = &room.page.template else {
        return Ok(());
    };
    let path = beside(config_file, path);
    let name = &room.name;
    let html = read(&path).map_err(|error| {
        let (config, path) = (config_file.display(), path.display());
        let what = format!("room \"{name}\": custom_page_file: cannot read {path}: {error}");
        vec![format!("{config}:{line}: {what}")]
    })?;
    let mistakes = CustomPage::mistakes(&html);
    if mistakes.is_empty() {
        room.page.template = Some(PageTemplate::Html(html));
        return Ok(());
    }
    let path = path.display();
    let told = mistakes.iter().map(|mistake| {
        let (line, message) = (mistake.line, &mistake.message);
        format!("{path}:{line}: room \"{name}\": custom_page_file: {message}")
    });
    Err(told.collect())
}

fn beside(config_file: &Path, path: &Path) -> PathBuf {
    match config_file.parent() {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(ENOUGH).read_to_string(&mut text)?;
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
    }
    Ok(text)
}
