//! `countersign receipt export`: receipts as JSON lines or as a table of SQLite, with the public keys
//! next to the file.

use std::path::{Path, PathBuf};

use admin::view::KeyList;
use store::read::Reader;

use crate::cli::ExportFormat;
use crate::command::export::{self, Output, with_ending};
use crate::control::{Control, with_query};
use crate::exit::Failure;
use crate::output;
use crate::site::Site;

/// The suffix of the file next to an export that holds its public keys.
pub(super) const KEYS_ENDING: &str = ".pub.pem";

/// Receipts to export.
pub(super) struct Export {
    pub(super) chain: Option<String>,
    pub(super) output: Option<PathBuf>,
    pub(super) format: ExportFormat,
    pub(super) ledger: Option<PathBuf>,
}

impl Export {
    pub(super) async fn run(self, site: &Site) -> Result<(), Failure> {
        let file = self.output.as_deref().map(|output| self.file_in(output));
        let keys = file.as_ref().map(|file| with_ending(file, KEYS_ENDING));
        keys.as_deref().map_or(Ok(()), export::refuse_existing)?;
        let control = Control::to_read(site, self.ledger.as_deref()).await?;
        match self.format {
            ExportFormat::Jsonl => {
                let path = with_query("/api/v1/receipts/export", &[("chain", self.chain.clone())]);
                export::to(&control, &path, file.as_deref()).await?;
            }
            ExportFormat::Sqlite => {
                // Once this is answered, a running gate has filed what it recorded so far.
                control.get("/api/v1/chains").await?;
                self.write_table(site, file.as_deref()).await?;
            }
        }
        // Written last, so that a key created meanwhile is included.
        match file.as_deref().filter(|file| !export::is_special(file)) {
            Some(file) => write_keys(&control, file).await,
            None => Ok(()),
        }
    }

    async fn write_table(self, site: &Site, file: Option<&Path>) -> Result<(), Failure> {
        let Some(file) = file.filter(|file| !export::is_special(file)) else {
            return Err(Failure::input(
                "a table of SQLite is written to a file: add --output receipts.db",
            ));
        };
        let ledger = match self.ledger {
            Some(ledger) => ledger,
            None => site.home()?.path().join(store::FILE),
        };
        let output = Output::create(file)?;
        let writing = move || {
            let reader = Reader::open(&ledger)?;
            reader.export_table(self.chain.as_deref(), output.path()).map(|_| output)
        };
        let written = mcp::task::spawn_blocking(writing).await;
        let written = written.map_err(|error| Failure::system(error.to_string()))?;
        written.map_err(|error| Failure::system(error.to_string()))?.finish()
    }

    /// Returns the file to write; in a folder, it is named after its content.
    fn file_in(&self, output: &Path) -> PathBuf {
        if !output.is_dir() {
            return output.to_owned();
        }
        let ending = match self.format {
            ExportFormat::Jsonl => "jsonl",
            ExportFormat::Sqlite => "db",
        };
        output.join(format!("{}.{ending}", self.chain.as_deref().unwrap_or("receipts")))
    }
}

/// Writes every key that ever signed here: an old receipt needs an old key.
async fn write_keys(control: &Control, file: &Path) -> Result<(), Failure> {
    let answer: KeyList = output::read(&control.get("/api/v1/keys").await?)?;
    let pems: String = answer.keys.into_iter().map(|key| key.pem).collect();
    if pems.is_empty() {
        output::note(
            "note: no public key of this ledger is known here, so none was written: \
             'countersign keys show --pem' prints it in the home of the ledger",
        );
        return Ok(());
    }
    let mut output = Output::create(&with_ending(file, KEYS_ENDING))?;
    output.write(pems.as_bytes())?;
    output.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_gets_a_file_of_the_chains_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = |chain: Option<&str>, format, output: &Path| {
            let chain = chain.map(str::to_owned);
            Export { chain, output: None, format, ledger: None }.file_in(output)
        };
        let (lines, table) = (ExportFormat::Jsonl, ExportFormat::Sqlite);
        assert_eq!(file(None, lines, dir.path()), dir.path().join("receipts.jsonl"));
        assert_eq!(file(Some("c"), lines, dir.path()), dir.path().join("c.jsonl"));
        assert_eq!(file(Some("c"), table, dir.path()), dir.path().join("c.db"));
        assert_eq!(file(Some("c"), table, Path::new("a.jsonl")), Path::new("a.jsonl"));
    }
}
