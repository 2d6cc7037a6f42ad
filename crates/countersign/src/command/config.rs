//! `countersign config show|check`.

use domain::config::render;

use crate::cli::{Config, Format, Place};
use crate::exit::Failure;
use crate::{output, source};

pub(crate) fn run(place: &Place, verb: Config) -> Result<(), Failure> {
    let source = source::load(place)?;
    match verb {
        Config::Show { output } => {
            let format = if output == Format::Table { Format::Json } else { output };
            output::print(format, &render(&source.config), |_| String::new())
        }
        Config::Check => {
            for note in &source.notes {
                output::line(&format!("note: {note}"))?;
            }
            let servers = source.config.servers.len();
            let file = match &source.file {
                Some(file) => file.display().to_string(),
                None => "no config file, the defaults".to_owned(),
            };
            output::line(&format!("ok: {file}, {servers} servers"))
        }
    }
}
