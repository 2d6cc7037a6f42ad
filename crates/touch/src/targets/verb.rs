//! Tells reads from writes: by the tool's annotation, else by the stricter of the intent that the
//! agent declared and the verb in the tool's name.

use super::Access;
use crate::{Class, Hints};

const READS: &[&str] = text::words!("verb/reads.txt");
const WRITES: &[&str] = text::words!("verb/writes.txt");
const LESSER_READS: &[&str] = text::words!("verb/lesser-reads.txt");
const LESSER_WRITES: &[&str] = text::words!("verb/lesser-writes.txt");

/// The beginnings with which a verb takes its effect back, as in `unlock`.
const REVERSALS: [&str; 3] = ["un", "dis", "de"];

impl Access {
    /// Returns the access of a call. `hints` are the tool's annotations if they are trusted, `verb`
    /// is what the tool's name says. An intent makes no read of what a verb writes.
    pub fn of_call(hints: Option<Hints>, declared: Option<Class>, verb: Access) -> Access {
        match hints.filter(|hints| !hints.unverified()) {
            Some(hints) => Access::of(Some(hints.class())),
            None if declared.is_some() && verb != Access::Write => Access::of(declared),
            None => verb,
        }
    }

    /// Returns what the verb of a tool's name says; unknown if it has none. The first verb counts.
    pub fn of_name(tool: &str) -> Access {
        let words = words(tool);
        let first = |of_word: fn(&str) -> Option<Access>| {
            words.iter().enumerate().find_map(|(at, word)| {
                let next = words.get(at + 1).map_or("", String::as_str);
                // A merge request and a pull request are things.
                let is_noun = matches!(&**word, "pull" | "merge") && next.starts_with("request");
                let access = of_word(word).filter(|_| !is_noun)?;
                let joined = matches!(next, "or" | "and").then(|| words.get(at + 2)).flatten();
                let other = joined.and_then(|word| of_word(word));
                // What may change something counts as a change: `get_or_create`.
                Some(if other == Some(Access::Write) { Access::Write } else { access })
            })
        };
        first(of_verb).or_else(|| first(of_lesser)).unwrap_or_default()
    }
}

fn of_verb(word: &str) -> Option<Access> {
    if READS.binary_search(&word).is_ok() {
        return Some(Access::Read);
    }
    let changes = |word: &str| WRITES.binary_search(&word).is_ok();
    let is_reversed = || {
        let rest = REVERSALS.iter().find_map(|beginning| word.strip_prefix(beginning));
        rest.is_some_and(|rest| changes(rest) || LESSER_WRITES.binary_search(&rest).is_ok())
    };
    (changes(word) || is_reversed()).then_some(Access::Write)
}

fn of_lesser(word: &str) -> Option<Access> {
    if LESSER_READS.binary_search(&word).is_ok() {
        Some(Access::Read)
    } else if LESSER_WRITES.binary_search(&word).is_ok() {
        Some(Access::Write)
    } else {
        None
    }
}

/// Splits a name in any spelling into its words, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    let mut chars = name.chars().peekable();
    while let Some(char) = chars.next() {
        let is_word = char.is_alphanumeric();
        let next_is_lower = chars.peek().is_some_and(|next| next.is_lowercase());
        // `getFile`, and the `F` in `HTTPFetch`.
        let begins = char.is_uppercase() && (!before.is_uppercase() || next_is_lower);
        if is_word && (begins || !before.is_alphanumeric()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| is_word) {
            word.extend(char.to_lowercase());
        }
        before = char;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tools of published servers whose definitions have no annotations, by what their calls do.
    const READING: &str = "fetch API-retrieve-a-page API-query-data-source get playwright_navigate \
        get_doc_content get_drive_file_content get_gmail_message_content read_data_from_excel \
        get_document_text list_available_documents qdrant-find chroma_query_documents read_secret \
        fetch_container_logs get_history read_file search_for_pattern read_email \
        salesforce_query_records read_documentation get_table_metadata_location get_resource";
    const WRITING: &str = "API-patch-page API-patch-block-children API-delete-a-block API-post-page \
        set hset json_set lpush rename publish playwright_put playwright_save_as_pdf modify_event \
        create_event create_drive_file write_data_to_excel rename_worksheet add_paragraph \
        copy_document protect_document qdrant-store chroma_add_documents chroma_delete_documents \
        write_secret delete_pki_role create_mount use_notebook stop_container run_container \
        pull_image build_image remove_volume entity_action call_service_tool create_or_update_file \
        update_issue merge_merge_request create_branch retry_pipeline update_wiki_page \
        replace_symbol_body create_text_file write_memory batch_delete_emails delete_label \
        download_attachment salesforce_dml_records salesforce_write_apex create_table \
        delete_resource";

    #[test]
    fn the_verbs_of_published_tools_are_known() {
        for (names, access) in [(READING, Access::Read), (WRITING, Access::Write)] {
            for name in names.split_whitespace() {
                assert_eq!(Access::of_name(name), access, "{name}");
            }
        }
    }

    #[test]
    fn the_first_verb_counts_and_nouns_are_no_verbs() {
        use Access::{Read, Unknown, Write};
        for (name, access) in [
            ("getFile", Read),
            ("HTTPFetch", Read),
            ("list_merge_requests", Read),
            ("pull_request_read", Read),
            ("get_pull_request", Read),
            ("pull_request_review_write", Write),
            ("label_list", Read),
            ("get_update_history", Read),
            ("get_or_create_user", Write),
            ("search_and_replace", Write),
            ("read_and_list", Read),
            ("unlock_issue", Write),
            ("uncordon_node", Write),
            ("untag", Write),
            ("unique", Unknown),
            ("container_logs", Read),
            ("tag_release", Write),
            ("sequentialthinking", Unknown),
            ("system", Unknown),
            ("", Unknown),
            ("___", Unknown),
            ("größe", Unknown),
        ] {
            assert_eq!(Access::of_name(name), access, "{name}");
        }
    }

    #[test]
    fn the_annotation_decides_else_the_stricter_of_intent_and_verb() {
        use Access::{Read, Unknown, Write};
        let hints =
            |read_only, destructive| Some(Hints { read_only, destructive, open_world: Some(true) });
        for (hints, declared, verb, expected) in [
            (hints(Some(true), None), Some(Class::Write), Write, Read),
            (hints(Some(false), None), Some(Class::Read), Read, Write),
            (hints(None, Some(true)), Some(Class::Read), Read, Write),
            (hints(None, Some(false)), None, Read, Write),
            (hints(None, None), Some(Class::Read), Write, Write),
            (hints(None, None), Some(Class::Read), Unknown, Read),
            (hints(None, None), Some(Class::Destructive), Read, Write),
            (hints(None, None), None, Read, Read),
            (None, Some(Class::Write), Read, Write),
            (None, None, Write, Write),
            (None, None, Unknown, Unknown),
        ] {
            assert_eq!(Access::of_call(hints, declared, verb), expected, "{hints:?} {declared:?}");
        }
    }
}
