//! The words for statuses that people read, the same as on the page. JSON, YAML, REST and receipts
//! keep the stable values.

/// Returns the word for a status of a record, run, step or receipt.
pub(crate) fn spoken(status: &str) -> &str {
    match status {
        "blocked" => "refused",
        "error" | "failure" => "failed",
        "pending" => "running",
        "timed_out" => "timed out",
        other => other,
    }
}

/// Returns the word with the code of the refusal or failure, if there is one.
pub(crate) fn with_code(status: &str, code: Option<&str>) -> String {
    match code {
        Some(code) => format!("{} {code}", spoken(status)),
        None => spoken(status).to_owned(),
    }
}

/// Returns the stable value, among these, of a word that a person typed: either form is accepted.
pub(crate) fn stable(word: &str, among: &[&'static str]) -> String {
    let is_meant = |value: &&&str| **value == word || spoken(value) == word;
    among.iter().find(is_meant).map_or(word, |value| *value).to_owned()
}

#[cfg(test)]
mod tests {
    use store::RecordStatus;
    use store::run::RunStatus;

    use super::*;

    #[test]
    fn both_forms_of_a_status_mean_the_same() {
        let records = RecordStatus::ALL.map(RecordStatus::as_str);
        for value in records {
            assert_eq!(stable(value, &records), value);
            assert_eq!(stable(spoken(value), &records), value);
        }
        assert_eq!(stable("failed", &RunStatus::ALL.map(RunStatus::as_str)), "failure");
        assert_eq!(with_code("blocked", Some("TOOL_BLOCKED")), "refused TOOL_BLOCKED");
    }
}
