//! Removes secrets from a record before it is written, from every text that is signed or indexed,
//! and cuts texts that are too long: callers and servers choose them.

use std::borrow::Cow;

use redact::Redactor;
use touch::targets::{NameLosses, TargetBasis, Touches};

use super::{CallEnd, CallStart, Entry, OutsideSource, ReceiptAction, RecordAgent, Word};
use crate::limits::{TEXT_BYTES_MAX, WARNINGS_MAX};

/// Notes in a record whose targets are not all there, or not under their whole names. Queries count
/// the records that have them.
pub const TARGET_OMITTED: &str = "target omitted: its name is too long or cannot be read";
pub const TARGETS_OMITTED: &str = "targets omitted: the call names more than 9";
pub const TARGET_REDACTED: &str = "target redacted: a part of its name appears to be a secret";

impl Entry {
    /// Returns the entry as it may be written: receipts are signed for good, so nothing can be
    /// removed from them later. Arguments and results are redacted and cut where they are read.
    #[must_use]
    pub fn redacted(mut self, redactor: &Redactor) -> Entry {
        match &mut self {
            Entry::Started(started) => started.redact(redactor),
            Entry::Ended(ended) => ended.redact(redactor),
            Entry::Whole(started, ended) => {
                started.redact(redactor);
                ended.redact(redactor);
            }
        }
        self
    }
}

impl CallStart {
    fn redact(&mut self, redactor: &Redactor) {
        // Every field is named, so that a new one is not forgotten.
        let CallStart {
            id: _,
            kind: _,
            source: _,
            surface: _,
            server,
            tool,
            agent: RecordAgent { name, client, token },
            session,
            request_id,
            at: _,
            variant: _,
            declared: _,
            sensitivity: _,
            reason,
            effective: _,
            unverified: _,
            warnings,
            touches,
            trace_id: _,
            arguments: _,
            action: ReceiptAction { kind, risk: _, correlation_id },
            outside,
        } = self;
        let texts = [server, tool, name, client, token].into_iter();
        let texts = texts.chain(session).chain(request_id).chain(reason).chain(correlation_id);
        note(warnings, redact_touches(touches, redactor));
        for text in texts.chain(warnings) {
            tidy(text, redactor);
        }
        redact_word(kind, redactor);
        if let Some(outside) = outside {
            outside.redact(redactor);
        }
    }
}

impl OutsideSource {
    fn redact(&mut self, redactor: &Redactor) {
        let OutsideSource {
            pid: _,
            uid: _,
            gid: _,
            drop_count: _,
            issuer_name,
            model,
            operator,
            agent_id,
            agent_type,
            capture_method,
            usage,
        } = self;
        // It is JSON, so part of it would be none.
        if usage.as_ref().is_some_and(|usage| usage.len() > TEXT_BYTES_MAX) {
            *usage = None;
        }
        let texts = [issuer_name, model, agent_id, agent_type, capture_method, usage];
        let operator =
            operator.iter_mut().flat_map(|operator| [&mut operator.id, &mut operator.name]);
        for text in texts.into_iter().flatten().chain(operator) {
            tidy(text, redactor);
        }
    }
}

impl CallEnd {
    fn redact(&mut self, redactor: &Redactor) {
        let CallEnd {
            id: _,
            status: _,
            error_code,
            error_message,
            duration: _,
            response: _,
            warnings,
            touches,
        } = self;
        note(warnings, redact_touches(touches, redactor));
        for text in warnings {
            tidy(text, redactor);
        }
        if let Some(word) = error_code {
            redact_word(word, redactor);
        }
        if let Some(text) = error_message {
            tidy(text, redactor);
        }
    }
}

/// Keeps as many warnings as a record may have. Those that queries count stay, whatever a caller
/// adds to the others.
fn note(warnings: &mut Vec<String>, losses: NameLosses) {
    let notes = [(losses.is_omitted, TARGET_OMITTED), (losses.is_redacted, TARGET_REDACTED)];
    for (is_noted, note) in notes {
        if is_noted && warnings.iter().all(|warning| warning != note) {
            warnings.push(note.to_owned());
        }
    }
    if warnings.len() > WARNINGS_MAX {
        let is_counted =
            |text: &String| [TARGET_OMITTED, TARGETS_OMITTED, TARGET_REDACTED].contains(&&**text);
        warnings.sort_by_key(|warning| !is_counted(warning));
        warnings.truncate(WARNINGS_MAX);
    }
}

/// Gives every resource the name that a record may have.
fn redact_touches(touches: &mut Touches, redactor: &Redactor) -> NameLosses {
    let (named, losses) = std::mem::take(touches).recordable(redactor);
    *touches = match named.basis().map(|basis| redactor.text(basis.as_str())) {
        Some(Cow::Owned(mut basis)) => {
            cut(&mut basis, TEXT_BYTES_MAX);
            Touches::recorded(named.all().to_vec(), Some(TargetBasis::new(basis)))
        }
        _ => named,
    };
    losses
}

/// Removes secrets, then the end of a long text.
fn tidy(text: &mut String, redactor: &Redactor) {
    // A secret is recognised only as a whole, so some of the end stays until it is removed.
    cut(text, 2 * TEXT_BYTES_MAX);
    redactor.line(text);
    cut(text, TEXT_BYTES_MAX);
}

fn cut(text: &mut String, bytes_max: usize) {
    if text.len() > bytes_max {
        *text = text[..text.floor_char_boundary(bytes_max)].to_owned();
    }
}

fn redact_word(word: &mut Word, redactor: &Redactor) {
    if let Cow::Owned(text) = word {
        tidy(text, redactor);
    }
}

#[cfg(test)]
mod tests {
    use touch::targets::{Access, Target, Touched};

    use super::super::EventOperator;
    use super::super::tests::started;
    use super::*;

    const SECRET: &str = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";

    /// Returns a record with this text in every place for one, as it may be written.
    fn written(text: &str) -> (Box<CallStart>, Box<CallEnd>) {
        let (owned, some) = (|| text.to_owned(), || Some(text.to_owned()));
        let outside = OutsideSource {
            issuer_name: some(),
            model: some(),
            operator: Some(EventOperator { id: owned(), name: owned() }),
            agent_id: some(),
            agent_type: some(),
            capture_method: some(),
            usage: some(),
            ..OutsideSource::default()
        };
        let started = CallStart {
            server: owned(),
            tool: owned(),
            agent: RecordAgent { name: owned(), client: owned(), token: owned() },
            session: some(),
            request_id: some(),
            reason: some(),
            warnings: vec![owned()],
            touches: Touches::reported(Target::of_path(owned()), Access::Write),
            action: ReceiptAction {
                kind: owned().into(),
                correlation_id: some(),
                ..started().action
            },
            outside: Some(Box::new(outside)),
            ..started()
        };
        let ended = CallEnd {
            error_code: Some(owned().into()),
            error_message: some(),
            warnings: vec![owned()],
            touches: Touches::reported(Target::of_path(format!("/{text}/x")), Access::Write),
            ..CallEnd::at_once(String::new())
        };
        let entry = Entry::Whole(Box::new(started), Box::new(ended));
        let Entry::Whole(started, ended) = entry.redacted(&Redactor::builtin()) else { panic!() };
        (started, ended)
    }

    #[test]
    fn no_text_of_a_record_keeps_a_secret() {
        let (started, ended) = written(SECRET);
        let text = serde_json::to_string(&(&started, &ended)).unwrap();
        assert!(!text.contains("ghp_"), "{text}");
        assert_eq!(text.matches("[redacted:github]").count(), 22, "{text}");
        assert_eq!(ended.warnings.last().map(String::as_str), Some(TARGET_REDACTED));
        assert_eq!(started.touches.main().map(Target::resource), Some("[redacted]"));
        assert_eq!(ended.touches.main().map(Target::resource), Some("/[redacted]/x"));
        assert_eq!(started.warnings.last().map(String::as_str), Some(TARGET_REDACTED));
    }

    #[test]
    fn no_text_of_a_record_is_long_and_none_is_cut_within_a_secret() {
        let (started, ended) = written(&"ä".repeat(1024 * 1024));
        let text = serde_json::to_string(&(&started, &ended)).unwrap();
        assert_eq!(text.matches('ä').count(), 21 * TEXT_BYTES_MAX / 2);
        let blank = " ".repeat(TEXT_BYTES_MAX - 10);
        let (started, _) = written(&format!("{blank}{SECRET}"));
        assert_eq!(started.tool, format!("{blank}[redacted:"));
    }

    #[test]
    fn a_secret_in_a_target_hides_its_segment_and_a_long_one_is_omitted() {
        let redacted = |resources: &[&str]| {
            let touched = |resource: &&str| Touched {
                target: Target::of_path((*resource).to_owned()).unwrap(),
                access: Access::Write,
            };
            let touches = Touches::new(resources.iter().map(touched), TargetBasis::fixed("config"));
            let call = CallStart { touches, warnings: vec![], ..started() };
            let entry = Entry::Started(Box::new(call)).redacted(&Redactor::builtin());
            let Entry::Started(call) = entry else { panic!() };
            let left = call.touches.all().iter().map(|one| one.target.resource().to_owned());
            let basis = call.touches.basis().unwrap().as_str().to_owned();
            (left.collect::<Vec<_>>(), basis, call.warnings)
        };
        let (secret, long) = (format!("/{SECRET}/x"), format!("/{}", "x".repeat(4096)));
        let too_long = TargetBasis::TOO_LONG;
        for (given, left, basis, warnings) in [
            (vec!["/a", "/b"], vec!["/a", "/b"], "config", vec![]),
            (vec!["/a", &secret], vec!["/a", "/[redacted]/x"], "config", vec![TARGET_REDACTED]),
            (vec![&long, "/b"], vec!["/b"], "config", vec![TARGET_OMITTED]),
            (vec![&long], vec![], too_long.as_str(), vec![TARGET_OMITTED]),
        ] {
            let expected = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect();
            let found = redacted(&given);
            assert_eq!(found, (expected(left), basis.to_owned(), expected(warnings)));
        }
    }

    #[test]
    fn what_is_said_of_targets_is_not_crowded_out() {
        let mut warnings = vec!["x".to_owned(); 2 * WARNINGS_MAX];
        note(&mut warnings, NameLosses { is_redacted: true, is_omitted: true });
        assert_eq!(warnings.len(), WARNINGS_MAX);
        assert_eq!(warnings[..3], [TARGET_OMITTED, TARGET_REDACTED, "x"]);
    }

    #[test]
    fn a_record_without_secrets_stays_as_it_is() {
        let before = serde_json::to_string(&started()).unwrap();
        let entry = Entry::Started(Box::new(started())).redacted(&Redactor::builtin());
        let Entry::Started(after) = entry else { panic!() };
        assert_eq!(serde_json::to_string(&after).unwrap(), before);
    }
}
