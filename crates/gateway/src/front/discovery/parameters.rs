//! The parameters of the gate's own tools.

use domain::Refusal;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Parses the parameters of one of the gate's own tools; the error names the invalid one.
pub(super) fn parameters<'a, T: Deserialize<'a>>(arguments: &'a RawValue) -> Result<T, Refusal> {
    serde_json::from_str(arguments.get()).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        Refusal::invalid_arguments(words.replace("field", "parameter"))
    })
}
