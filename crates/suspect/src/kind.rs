//! The kinds of warning, and their stable names.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarningKind {
    /// Characters that a person cannot see.
    HiddenCharacters,
    /// Text that steers the model instead of describing the tool.
    InstructsModel,
    /// Mentions of files that contain secrets.
    NamesSecrets,
    /// A long run of encoded text, which cannot be reviewed.
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
