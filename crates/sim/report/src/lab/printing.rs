//! Output of long texts by the commands of the simulator.

use std::io::Write;
use std::path::Path;

use crate::chart::story::Story;
use anyhow::Context as _;

/// Checks that `folder` can be written to, before runs that may take long.
///
/// # Errors
///
/// Returns an error if it exists and is not a folder; the message names the flag.
pub fn check_folder(flag: &str, folder: &Path) -> anyhow::Result<()> {
    anyhow::ensure!(
        folder.is_dir() || !folder.exists(),
        "{flag} {}: it exists and is not a folder",
        folder.display()
    );
    Ok(())
}

/// Computes a story, prints its text, and writes it with its charts into the folder of `--story`.
///
/// # Errors
///
/// Returns an error if printing or writing fails.
pub fn write_story(
    folder: &Path,
    compute: impl FnOnce() -> Story,
    out: &mut impl Write,
    err: &mut impl Write,
) -> anyhow::Result<()> {
    check_folder("--story", folder)?;
    let story = compute();
    out.write_all(story.markdown().as_bytes())?;
    let text = story.write(folder).context("cannot write the story")?;
    writeln!(err, "\nThe story is in {}", text.display())?;
    Ok(())
}
