//! `countersign validate`: reports every fault of a workflow at once, without running any of it.

use crate::cli::{Validate, ValidateFormat};
use crate::command::run::{cancelled, checked, text_of};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::plugins::Plugins;
use crate::site::Site;
use crate::stop_signal::StopSignal;

pub(crate) async fn run(site: &Site, args: &Validate) -> Result<(), Failure> {
    let mut told = StopSignal::new()?;
    let source = site.source()?;
    let text = text_of(&args.file)?;
    let home = site.home()?;
    let plugins = Plugins::find(home.path(), &source.config);
    // This queries the agents' programs and the plugins, which may take a while.
    let read = tokio::select! {
        read = checked(&text, &source.config, home.path(), &plugins, None) => read,
        () = told.received() => return Err(cancelled()),
    };
    match args.format {
        ValidateFormat::Json => output::line(&crate::json::pretty(&read.json()))?,
        ValidateFormat::Text => {
            let file = args.file.display();
            let errors = read.errors.iter().map(|fault| ("error", fault));
            let warnings = read.warnings.iter().map(|fault| ("warning", fault));
            for (word, fault) in errors.chain(warnings) {
                let fault_words = output::plain(&fault.to_string());
                output::line(&format!("{file}: {word}: {}: {fault_words}", fault.code))?;
            }
            if read.is_valid() {
                let name = read.name.as_deref().unwrap_or_default();
                output::line(&format!("{file}: workflow '{}' is valid", output::plain(name)))?;
            }
        }
    }
    if read.is_valid() { Ok(()) } else { Err(Failure::with_status(Exit::Config as u8, "")) }
}
