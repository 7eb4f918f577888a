//! How does a command of the simulations speak to its user?

use std::io::{self, Write as _};
use std::path::Path;

use anteroom_chart::story::Story;
use anyhow::Context as _;

/// Prints what was asked for. Whoever reads no further, as `head` does, has had enough: that is no error.
///
/// # Errors
///
/// If nothing can be written, such as to a full disk.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot print"),
    }
}

/// Says how it goes, beside what is printed.
#[expect(clippy::print_stderr, reason = "a command tells its user how it went")]
pub fn tell(line: &str) {
    eprintln!("{line}");
}

/// Sees whether `folder` can be written to, before runs that may take long.
///
/// # Errors
///
/// If it is there and no folder; the message names the flag that brought it.
pub fn check_folder(flag: &str, folder: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        folder.is_dir() || !folder.exists(),
        "{flag} {}: it is there already and is no folder",
        folder.display()
    );
    Ok(())
}

/// Computes a story, prints its text, and writes it with its charts into the folder of `--story`.
///
/// # Errors
///
/// If nothing can be printed, or the files cannot be written there.
pub fn write_story(folder: &Path, compute: impl FnOnce() -> Story) -> anyhow::Result<()> {
    check_folder("--story", folder)?;
    let story = compute();
    print(&story.markdown)?;
    let text = story.write(folder).context("cannot write the story")?;
    tell(&format!("\nThe story is in {}", text.display()));
    Ok(())
}
