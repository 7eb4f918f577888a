//! Loader of the files that a room's page names: a template, a logo.
//!
//! They are read with the configuration, so that `anteroom check` and a SIGHUP see their present
//! contents.

use std::io;
use std::path::{Path, PathBuf};

use anteroom_config::{Config, Owner, PageLogo, PageTemplate, Problem, RoomConfig, RoomName};
use anteroom_room_http::page::{CUSTOM_PAGE_BYTES_MAX, CustomPage};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::check::files;

/// Largest logo in bytes. Each waiting visitor gets it with the page.
const LOGO_BYTES_MAX: usize = 20 * 1_024;

/// Replaces the path of each room's template by its text. Returns every mistake, one a line, and
/// what is odd in the pages of templates without mistakes.
///
/// A file that cannot be read is reported with the line of the config file that names it, a mistake
/// in a template with its own file and line. A room with a mistake loses its template, so that it
/// is reported once; its configuration must not be used. Paths are relative to the folder of the
/// config file.
pub(crate) fn load(config: &mut Config, config_file: &Path) -> (Vec<String>, Vec<Problem>) {
    let mut mistakes = Vec::new();
    let mut warnings = Vec::new();
    for room in &mut config.rooms {
        let name = room.name.clone();
        for template in room.templates_mut() {
            match template.take() {
                Some(PageTemplate::Html(html)) => {
                    warnings.extend(odd_html(&name, &html, config_file));
                    *template = Some(PageTemplate::Html(html));
                }
                Some(PageTemplate::File { path, line }) => {
                    match read(&name, &path, line, config_file) {
                        Ok(html) => {
                            let file = beside(config_file, &path);
                            warnings.extend(odd_file(&name, &html, &file));
                            *template = Some(PageTemplate::Html(html));
                        }
                        Err(more) => mistakes.extend(more),
                    }
                }
                None => {}
            }
        }
        let file = |logo: &mut _| matches!(logo, PageLogo::File { .. });
        if let Some(PageLogo::File { path, line }) = room.page.logo.take_if(file) {
            match read_logo(room, &path, line, config_file) {
                Ok(data) => room.page.logo = Some(PageLogo::Data(data)),
                Err(mistake) => mistakes.push(mistake),
            }
        }
    }
    (mistakes, warnings)
}

/// Returns what is odd in the pages of a template in a file, with the lines of that file.
fn odd_file(room: &RoomName, html: &str, path: &Path) -> Vec<Problem> {
    let remarks = CustomPage::remarks(html).into_iter();
    let problems = remarks.map(|remark| Problem {
        source: path.display().to_string().into(),
        line: Some(remark.line),
        ..Problem::remark(owner(room), "custom_page_file", &remark.message)
    });
    problems.collect()
}

/// Returns what is odd in the pages of a template in the config file.
fn odd_html(room: &RoomName, html: &str, config_file: &Path) -> Vec<Problem> {
    let remarks = CustomPage::remarks(html).into_iter();
    let problems = remarks.map(|remark| {
        let text = format!("line {} of the template: {}", remark.line, remark.message);
        Problem {
            source: config_file.display().to_string().into(),
            ..Problem::remark(owner(room), "custom_page_html", &text)
        }
    });
    problems.collect()
}

fn owner(room: &RoomName) -> Owner {
    Owner::Room(room.to_string())
}

/// Returns the picture as a `data:` address.
fn read_logo(
    room: &RoomConfig,
    path: &Path,
    line: usize,
    config_file: &Path,
) -> Result<String, String> {
    let path = beside(config_file, path);
    let kind = match path.extension().and_then(|end| end.to_str()) {
        Some("svg") => "svg+xml",
        Some("jpg") => "jpeg",
        Some("webp") => "webp",
        _ => "png",
    };
    let bytes = files::read_at_most(&path, LOGO_BYTES_MAX).map_err(|error| {
        let (config, path, name) = (config_file.display(), path.display(), &room.name);
        format!("{config}:{line}: room \"{name}\": page.logo: cannot read {path}: {error}")
    })?;
    Ok(format!(
        "data:image/{kind};base64,{}",
        STANDARD.encode(bytes)
    ))
}

fn read(
    name: &RoomName,
    path: &Path,
    line: usize,
    config_file: &Path,
) -> Result<String, Vec<String>> {
    let path = beside(config_file, path);
    let html = text_of(&path).map_err(|error| {
        let (config, path) = (config_file.display(), path.display());
        let what = format!("room \"{name}\": custom_page_file: cannot read {path}: {error}");
        vec![format!("{config}:{line}: {what}")]
    })?;
    let mistakes = CustomPage::mistakes(&html);
    if mistakes.is_empty() {
        return Ok(html);
    }
    let path = path.display();
    let lines = mistakes.iter().map(|mistake| {
        let (line, message) = (mistake.line, &mistake.message);
        format!("{path}:{line}: room \"{name}\": custom_page_file: {message}")
    });
    Err(lines.collect())
}

fn beside(config_file: &Path, path: &Path) -> PathBuf {
    match config_file.parent() {
        Some(folder) => folder.join(path),
        None => path.to_owned(),
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    let text = files::read_text_at_most(path, CUSTOM_PAGE_BYTES_MAX)?;
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is empty"));
    }
    Ok(text)
}
