//! Phrases that steer a model, in one table from which the documentation is generated.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::kind::WarningKind;

/// The length of an unbroken run that counts as encoded: above keys and hashes, which examples
/// contain.
pub(super) const ENCODED_CHARS_MIN: usize = 200;

/// The longest phrase of `then`: text beyond it and `within` is not examined.
const THEN_CHARS_MAX: usize = 40;

/// Applies if one of `begins` occurs in a text as a separate word and, if `then` is not empty, one
/// of those follows within `within` characters in the same sentence. All in lowercase.
pub(super) struct Rule {
    pub(super) kind: WarningKind,
    /// The reason, for the documentation.
    pub(super) why: &'static str,
    /// The effect of the matching text, as worded in a warning.
    pub(super) what: &'static str,
    begins: &'static [&'static str],
    then: &'static [&'static str],
    within: usize,
}

impl Rule {
    /// Describes the rule's phrases for the documentation.
    pub(super) fn shown(&self) -> String {
        let list = |phrases: &[&str]| {
            phrases.iter().map(|phrase| format!("`{phrase}`")).collect::<Vec<_>>().join(", ")
        };
        match self.then {
            [] => list(self.begins),
            then => format!("{} … {}", list(self.begins), list(then)),
        }
    }
}

pub(super) static RULES: [Rule; 14] = [
    Rule {
        kind: WarningKind::InstructsModel,
        why: "this is the classic prompt injection",
        what: "tells the model to ignore instructions",
        begins: &["ignore", "disregard", "forget", "override", "overrides", "bypass"],
        then: &[
            "previous instructions",
            "prior instructions",
            "earlier instructions",
            "above instructions",
            "instructions above",
            "other instructions",
            "all instructions",
            "your instructions",
            "system instructions",
            "existing instructions",
            "user's instructions",
            "previous rules",
            "previous prompts",
            "safety rules",
        ],
        within: 40,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a tool has no reason to hide its use from the user",
        what: "tells the model to hide something from the user",
        begins: &["do not", "don't", "never", "must not", "should not", "avoid"],
        then: &[
            "tell the user",
            "inform the user",
            "notify the user",
            "warn the user",
            "ask the user",
            "show the user",
            "alert the user",
            "let the user know",
            "to the user about this",
            "mention this",
            "mention that you",
            "mention it to",
            "mention to the user",
            "reveal this",
            "telling the user",
            "informing the user",
            "mentioning this",
        ],
        within: 40,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "actions behind the user's back need a closer look",
        what: "asks for an action without the user's knowledge",
        begins: &["without"],
        then: &[
            "asking the user",
            "telling the user",
            "informing the user",
            "notifying the user",
            "alerting the user",
            "prompting the user",
            "the user knowing",
            "the user's knowledge",
            "the user's consent",
            "user consent",
            "the user's permission",
        ],
        within: 20,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "prompt markup pretends that the text comes from someone else",
        what: "uses prompt markup",
        begins: &[
            "<important>",
            "<system>",
            "</system>",
            "<instructions>",
            "<instruction>",
            "<secret>",
            "<hidden>",
            "<system-reminder>",
            "<system_prompt>",
            "<assistant>",
            "<|im_start|>",
            "<|system|>",
            "[inst]",
            "<<sys>>",
            "[system]",
        ],
        then: &[],
        within: 0,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "only tools that prompt a model have a reason to mention it",
        what: "mentions the system prompt",
        begins: &["system prompt", "system prompts"],
        then: &[],
        within: 0,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "it instructs the model instead of describing the tool",
        what: "instructs the model to do something",
        begins: &["you must", "you have to", "assistant must", "model must"],
        then: &["call", "use", "invoke", "read", "run", "execute", "send", "include"],
        within: 16,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a tool that is called first can influence the calls that follow",
        what: "asks to be called before other tools",
        begins: &["before"],
        then: &["any other tool", "any other tools", "all other tools", "other tools", "any tool"],
        within: 20,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a tool should not replace others by its own word",
        what: "steers the model away from other tools",
        begins: &[
            "instead of",
            "in place of",
            "do not use",
            "don't use",
            "never use",
            "takes precedence over",
            "supersedes",
        ],
        then: &[
            "any other tool",
            "any other tools",
            "other tool",
            "other tools",
            "another tool",
            "built-in tool",
            "built-in tools",
        ],
        within: 40,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "the model should choose a tool by its purpose",
        what: "urges the model to use it",
        begins: &[
            "always use this tool",
            "always call this tool",
            "always prefer this tool",
            "always run this tool",
            "always invoke this tool",
            "use this tool for every",
            "use this tool for all",
        ],
        then: &[],
        within: 0,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a fixed address can be used to collect data",
        what: "names an address to send data to",
        begins: &["send", "post", "upload", "forward", "transmit", "exfiltrate"],
        then: &["to http://", "to https://"],
        within: 60,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a parameter can carry data out besides its stated purpose",
        what: "asks for the contents of a file in a parameter",
        begins: &["pass", "include", "put", "attach", "append"],
        then: &[
            "contents of that file",
            "content of that file",
            "its contents as",
            "its content as",
            "contents of your",
            "contents of the user's",
            "contents of ~",
            "contents of /",
            "content of ~",
            "content of /",
            "file contents as",
            "file content as",
        ],
        within: 40,
    },
    Rule {
        kind: WarningKind::InstructsModel,
        why: "a tool has no reason to collect the conversation",
        what: "asks for the conversation",
        begins: &["pass", "include", "put", "attach", "append", "provide", "send", "save", "log"],
        then: &[
            "conversation history",
            "chat history",
            "whole conversation",
            "entire conversation",
            "full conversation",
            "all previous messages",
        ],
        within: 40,
    },
    Rule {
        kind: WarningKind::NamesSecrets,
        why: "attackers look for keys and for the configs of agents",
        what: "names a file that holds secrets",
        begins: &[
            "~/.ssh",
            ".ssh/",
            "id_rsa",
            "id_ed25519",
            "~/.aws",
            ".aws/credentials",
            ".netrc",
            ".git-credentials",
            "/etc/passwd",
            "/etc/shadow",
            "mcp.json",
            "claude_desktop_config",
            "claude_desktop_config.json",
            "~/.cursor",
        ],
        then: &[],
        within: 0,
    },
    Rule {
        kind: WarningKind::NamesSecrets,
        why: "projects keep their secrets in this file",
        what: "names a file that holds secrets",
        begins: &["read", "open", "cat", "send", "contents of", "content of"],
        then: &[".env"],
        within: 30,
    },
];

/// The starting phrases of all rules.
struct Beginnings {
    all: AhoCorasick,
    /// The rule of each pattern.
    rules: Vec<usize>,
}

static BEGINNINGS: LazyLock<Beginnings> = LazyLock::new(|| {
    let pairs = || {
        let rules = RULES.iter().enumerate();
        rules.flat_map(|(at, rule)| rule.begins.iter().map(move |begin| (at, *begin)))
    };
    Beginnings {
        all: AhoCorasick::new(pairs().map(|(_, begin)| begin))
            .expect("the phrases are few and short"),
        rules: pairs().map(|(rule, _)| rule).collect(),
    }
});

/// Returns the rules that apply to a normalized text, each with its span.
pub(super) fn phrases_in(text: &str) -> impl Iterator<Item = (usize, Range<usize>)> {
    let found = BEGINNINGS.all.find_overlapping_iter(text);
    found.filter_map(move |begin| {
        let rule = BEGINNINGS.rules[begin.pattern().as_usize()];
        if !stands_alone(text, begin.range()) {
            return None;
        }
        let end = match RULES[rule].then {
            [] => begin.end(),
            then => follows(text, begin.end(), then, RULES[rule].within)?,
        };
        Some((rule, begin.start()..end))
    })
}

/// Returns the end of the first phrase of `then` that begins in the same sentence within `within`
/// characters.
fn follows(text: &str, from: usize, then: &[&str], within: usize) -> Option<usize> {
    let window = first_characters(&text[from..], within + THEN_CHARS_MAX);
    let stops = [". ", "! ", "? "].iter().filter_map(|stop| window.find(stop));
    let sentence = &window[..stops.min().unwrap_or(window.len())];
    let reach = first_characters(sentence, within).len();
    let ends = then.iter().filter_map(|phrase| {
        let mut places = sentence.match_indices(phrase).take_while(|(at, _)| *at <= reach);
        let alone = |at: usize| stands_alone(text, from + at..from + at + phrase.len());
        places.find(|(at, _)| alone(*at)).map(|(at, phrase)| from + at + phrase.len())
    });
    ends.min()
}

fn first_characters(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(at, _)| &text[..at])
}

/// Reports whether no word extends past an end of the span. Brackets may begin anywhere.
fn stands_alone(text: &str, span: Range<usize>) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let begins_word = text[span.clone()].starts_with(|c| is_word(c) || c == '.');
    let ends_word = text[span.clone()].ends_with(is_word);
    let goes_on_before = begins_word && text[..span.start].ends_with(is_word);
    let goes_on_after = ends_word && text[span.end..].starts_with(is_word);
    !goes_on_before && !goes_on_after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_stored_in_normalized_form() {
        for rule in &RULES {
            for phrase in rule.begins.iter().chain(rule.then) {
                assert_eq!(super::super::Plain::of(phrase).text, **phrase);
                assert!(phrase.chars().count() <= THEN_CHARS_MAX, "{phrase}");
            }
        }
    }

    #[test]
    fn phrases_are_whole_words_of_one_sentence() {
        for (text, found) in [
            ("do not tell the user", true),
            ("please do not, whatever happens, tell the user about it", true),
            ("do not retry. tell the user", false),
            ("undo not tell the user", false),
            ("do not tell the users", false),
            ("do not do this or that or anything else that comes to mind, tell the user", false),
            ("read process.env", false),
            ("read the file .env", true),
            ("text<important>x", true),
            ("ümlaut do not ü tell the user ü", true),
        ] {
            assert_eq!(phrases_in(text).next().is_some(), found, "{text}");
        }
    }
}
