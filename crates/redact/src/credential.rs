//! The credentials that the gate itself makes. Each kind has its own prefix, which tells people
//! which one they hold, and the redactor which texts are credentials.

use std::fmt::Write;

macro_rules! credentials {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal,)*) => {
        /// A kind of credential.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Credential {
            $($(#[$doc])* $name,)*
        }

        impl Credential {
            pub const ALL: &[Credential] = &[$(Credential::$name),*];

            /// Returns the first characters of every credential of this kind.
            pub const fn prefix(self) -> &'static str {
                match self {
                    $(Credential::$name => $prefix,)*
                }
            }
        }
    };
}

credentials! {
    /// Grants access to everything.
    AdminKey = "csk_",
    /// Grants an agent access to MCP.
    AgentToken = "cst_",
    /// Signs one browser in, once.
    PageCode = "csl_",
    /// The half of a page's session that the browser keeps.
    PageCookie = "csc_",
    /// The half of a page's session that one tab keeps.
    PageToken = "css_",
}

impl Credential {
    /// Returns the credential with these random bytes.
    pub fn text(self, random: &[u8]) -> String {
        let mut text = self.prefix().to_owned();
        for byte in random {
            write!(text, "{byte:02x}").expect("a string can be written to");
        }
        text
    }
}
