//! The kinds of warning, and their stable words.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// Characters that a person does not see.
    HiddenCharacters,
    /// Text that steers the model instead of saying what the tool does.
    InstructsModel,
    /// Files in which secrets are kept.
    NamesSecrets,
    /// A long run of encoded text, which nobody can review.
    EncodedText,
    /// The name of another server's tool.
    BorrowedName,
}

impl WarningKind {
    pub const ALL: [WarningKind; 5] = [
        WarningKind::HiddenCharacters,
        WarningKind::InstructsModel,
        WarningKind::NamesSecrets,
        WarningKind::EncodedText,
        WarningKind::BorrowedName,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            WarningKind::HiddenCharacters => "hidden_characters",
            WarningKind::InstructsModel => "instructs_model",
            WarningKind::NamesSecrets => "names_secrets",
            WarningKind::EncodedText => "encoded_text",
            WarningKind::BorrowedName => "borrowed_name",
        }
    }

    pub fn parse(text: &str) -> Option<WarningKind> {
        WarningKind::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}
