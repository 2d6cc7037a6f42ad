//! Fits search results to what a model can afford: as many as the room allows, with full schemas
//! where they were requested and fit.

use super::retrieve::DetailLevel;

/// The room for a default answer: 800 tokens of about four characters.
const DEFAULT_CHARS_MAX: usize = 4 * 800;

/// Results in a default answer, however long they are.
const DEFAULT_RESULTS_MIN: usize = 5;

/// Room within the limit of one response that is left to notices.
const NOTICE_CHARS: usize = 1000;

/// The request and its room.
#[derive(Clone, Copy)]
pub(super) struct Fit {
    pub(super) detail: DetailLevel,
    /// True if the caller named a number of results.
    pub(super) asked: bool,
    /// Characters of the answer around the results.
    pub(super) around: usize,
    /// Characters of one response; 0 is no limit.
    pub(super) response_max: usize,
}

/// One result in both forms.
pub(super) struct Entry {
    pub(super) compact: String,
    pub(super) full: Option<String>,
}

pub(super) struct Fitted {
    pub(super) entries: Vec<String>,
    /// Says what did not fit.
    pub(super) note: Option<String>,
}

impl Fit {
    pub(super) fn results(self, entries: Vec<Entry>) -> Fitted {
        let found = entries.len();
        let room = self.room();
        let sizes: Vec<usize> = entries.iter().map(|entry| size(&entry.compact)).collect();
        let fitting =
            |mut left: usize| sizes.iter().take_while(|size| take(&mut left, **size)).count();
        let intended = match (self.detail, self.asked) {
            (DetailLevel::Compact, false) => {
                let room = DEFAULT_CHARS_MAX.saturating_sub(self.around);
                fitting(room).max(DEFAULT_RESULTS_MIN).min(found)
            }
            (DetailLevel::Compact, true) | (DetailLevel::Full, _) => found,
        };
        // One result is shown in any case; the answer is cut if even that is too long.
        let shown = fitting(room).min(intended).max(1).min(found);
        let used: usize = sizes[..shown].iter().sum();
        let mut left = room.saturating_sub(used);
        let mut without_schema = 0;
        let entries = entries.into_iter().take(shown).map(|entry| {
            let Some(full) = entry.full else { return entry.compact };
            let more = size(&full).saturating_sub(size(&entry.compact));
            if take(&mut left, more) {
                full
            } else {
                without_schema += 1;
                entry.compact
            }
        });
        let entries: Vec<String> = entries.collect();
        Fitted { entries, note: self.note(shown, intended, without_schema) }
    }

    /// Reports whether an answer fits, with the notice that may follow.
    pub(super) fn fits(self, answer: &str) -> bool {
        answer.chars().count() <= self.whole()
    }

    fn room(self) -> usize {
        self.whole().saturating_sub(self.around)
    }

    fn whole(self) -> usize {
        match self.response_max {
            0 => usize::MAX,
            max => max.saturating_sub(NOTICE_CHARS).max(max / 2),
        }
    }

    fn note(self, shown: usize, intended: usize, without_schema: usize) -> Option<String> {
        let max = self.response_max;
        let short = (shown < intended).then(|| {
            format!("Only {shown} of {intended} results fit {max} characters; use a smaller limit.")
        });
        let schemas = (without_schema > 0).then(|| {
            format!(
                "The full schemas of {without_schema} of {shown} results do not fit {max} \
                 characters; describe_tool returns them."
            )
        });
        let notes: Vec<String> = short.into_iter().chain(schemas).collect();
        (!notes.is_empty()).then(|| notes.join(" "))
    }
}

/// Returns the characters of a result and the comma after it.
fn size(entry: &str) -> usize {
    entry.chars().count() + 1
}

fn take(left: &mut usize, size: usize) -> bool {
    let fits = size <= *left;
    if fits {
        *left -= size;
    }
    fits
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIT: Fit =
        Fit { detail: DetailLevel::Compact, asked: false, around: 200, response_max: 20_000 };

    /// Results of these sizes, compact and full.
    fn entries(count: usize, compact: usize, full: Option<usize>) -> Vec<Entry> {
        let entry =
            |_| Entry { compact: "c".repeat(compact), full: full.map(|full| "f".repeat(full)) };
        (0..count).map(entry).collect()
    }

    #[test]
    fn a_default_answer_takes_what_fits_and_at_least_five() {
        for (count, size, expected) in [(15, 99, 15), (15, 299, 10), (15, 2_000, 5), (3, 2_000, 3)]
        {
            let fitted = FIT.results(entries(count, size, None));
            assert_eq!(fitted.entries.len(), expected, "{count} of {size}");
            assert_eq!(fitted.note, None);
        }
    }

    #[test]
    fn an_explicit_limit_is_bounded_only_by_the_response() {
        let fit = Fit { asked: true, ..FIT };
        assert_eq!(fit.results(entries(40, 299, None)).entries.len(), 40);
        let fitted = fit.results(entries(100, 299, None));
        assert_eq!(fitted.entries.len(), 62);
        let note = "Only 62 of 100 results fit 20000 characters; use a smaller limit.";
        assert_eq!(fitted.note.as_deref(), Some(note));
        let unlimited = Fit { response_max: 0, ..fit };
        assert_eq!(unlimited.results(entries(100, 2_000, None)).entries.len(), 100);
    }

    #[test]
    fn full_results_become_compact_where_they_do_not_fit() {
        let fit = Fit { detail: DetailLevel::Full, ..FIT };
        let fitted = fit.results(entries(15, 300, Some(600)));
        assert!(fitted.entries.iter().all(|entry| entry.starts_with('f')));
        assert_eq!(fitted.note, None);
        let fitted = fit.results(entries(15, 300, Some(3_000)));
        assert_eq!(fitted.entries.len(), 15);
        assert_eq!(fitted.entries.iter().filter(|entry| entry.starts_with('f')).count(), 5);
        let note = "The full schemas of 10 of 15 results do not fit 20000 characters; \
                    describe_tool returns them.";
        assert_eq!(fitted.note.as_deref(), Some(note));
        // A later result may fit where an earlier one did not.
        let mut mixed = entries(1, 300, Some(100_000));
        mixed.extend(entries(1, 300, Some(600)));
        let fitted = fit.results(mixed);
        assert!(fitted.entries[0].starts_with('c') && fitted.entries[1].starts_with('f'));
    }

    #[test]
    fn one_result_is_always_shown() {
        let fit = Fit { response_max: 100, ..FIT };
        assert_eq!(fit.results(entries(15, 500, None)).entries.len(), 1);
        assert!(fit.results(Vec::new()).entries.is_empty());
    }
}
