//! The clues of tokens that are known by their form: prefixes, which a file lists, and the forms that
//! need more than a prefix.

use std::sync::LazyLock;

use super::super::REDACTED;
use super::super::list::{columns, rows};
use super::{NAMED, Prefix, Run, Shape};

/// The clues to look for, each with its shape. Clues match in any case; shapes check their own.
pub(in super::super) static CLUES: LazyLock<Vec<(&str, Shape)>> =
    LazyLock::new(|| rows(include_str!("prefixes.txt")).map(prefix).chain(OTHERS).collect());

/// Reads a row of the file.
fn prefix(row: &'static str) -> (&'static str, Shape) {
    let [word, marker, run, least, most] = columns(row);
    let length = |digits: &str| digits.parse().expect("the tests read the file");
    let shape = Shape::Prefix(Prefix {
        replacement: if marker == NONE { REDACTED } else { named(marker) },
        run: run_named(run),
        length_min: length(least),
        length_max: if most == NONE { usize::MAX } else { length(most) },
    });
    (word, shape)
}

/// The sign for a marker without a name, and for a run of any length.
const NONE: &str = "-";

fn named(name: &str) -> &'static str {
    let is_named = |marker: &&&str| marker.strip_prefix("[redacted:") == Some(&format!("{name}]"));
    NAMED.iter().find(is_named).expect("the tests read the file")
}

fn run_named(name: &str) -> Run {
    let runs = [
        ("hex", Run::Hex),
        ("alphanumeric", Run::Alphanumeric),
        ("word", Run::Word),
        ("hyphenated", Run::Hyphenated),
        ("dotted", Run::Dotted),
        ("base64", Run::Base64),
        ("path", Run::Path),
        ("blob", Run::Blob),
    ];
    let run = runs.into_iter().find(|(other, _)| *other == name);
    run.expect("the tests read the file").1
}

const OTHERS: [(&str, Shape); 50] = [
    ("AKIA", Shape::AwsKeyId),
    ("ASIA", Shape::AwsKeyId),
    ("ABIA", Shape::AwsKeyId),
    ("ACCA", Shape::AwsKeyId),
    (":AA", Shape::Telegram),
    (":APA91b", Shape::Firebase),
    ("-us", Shape::Mailchimp),
    (".atlasv1.", Shape::Terraform),
    ("pat", Shape::Airtable),
    ("$apr1$", Shape::PasswordHash),
    ("$1$", Shape::PasswordHash),
    ("$5$", Shape::PasswordHash),
    ("$6$", Shape::PasswordHash),
    ("$7$", Shape::PasswordHash),
    ("$y$", Shape::PasswordHash),
    ("$gy$", Shape::PasswordHash),
    ("$2a$", Shape::PasswordHash),
    ("$2b$", Shape::PasswordHash),
    ("$2x$", Shape::PasswordHash),
    ("$2y$", Shape::PasswordHash),
    ("$P$", Shape::PasswordHash),
    ("$H$", Shape::PasswordHash),
    ("$argon2", Shape::PasswordHash),
    ("$scrypt$", Shape::PasswordHash),
    ("$pbkdf2", Shape::PasswordHash),
    ("pbkdf2_sha256$", Shape::PasswordHash),
    ("{SHA}", Shape::PasswordHash),
    ("{SSHA}", Shape::PasswordHash),
    ("{SSHA256}", Shape::PasswordHash),
    ("{SSHA512}", Shape::PasswordHash),
    ("{CRYPT}", Shape::PasswordHash),
    ("eyJ", Shape::Jwt),
    ("-----BEGIN ", Shape::Pem),
    ("---- BEGIN ", Shape::Pem),
    ("Private-Lines:", Shape::Putty),
    ("bearer ", Shape::Scheme),
    ("basic ", Shape::Scheme),
    ("ssws ", Shape::Scheme),
    ("://", Shape::Authority),
    ("?key=", Shape::Query),
    ("&key=", Shape::Query),
    ("?code=", Shape::Query),
    ("&code=", Shape::Query),
    ("?sig=", Shape::Query),
    ("&sig=", Shape::Query),
    ("amp;sig=", Shape::Query),
    ("u0026sig=", Shape::Query),
    ("%26sig%3d", Shape::Query),
    ("?sid=", Shape::Query),
    ("&sid=", Shape::Query),
];
