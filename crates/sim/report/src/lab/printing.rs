//! Where does a command of the simulations write what is more than a few lines?

use std::path::Path;

use crate::chart::story::Story;
use anteroom_config::terminal::{print, tell};
use anyhow::Context as _;

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
