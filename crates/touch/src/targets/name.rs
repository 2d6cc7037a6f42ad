//! The names of resources as records may have them: without secrets, in one line, of a limited
//! length. Paths are resolved first, so that a secret in a folder that a path leaves again hides
//! nothing.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::{
    FILESYSTEM, RESOURCE_BYTES_MAX, SYSTEM_BYTES_MAX, Target, TargetBasis, Touched, Touches,
    is_break,
};
use redact::{REDACTED, Redactor};

/// The losses of the names of a call's resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameLosses {
    /// A part of a name is hidden: it appears to be a secret.
    pub is_redacted: bool,
    /// A name was too long, or is not known, and the resource is left out.
    pub is_omitted: bool,
}

impl Touches {
    /// Returns the resources under the names that a record may have.
    pub fn recordable(self, redactor: &Redactor) -> (Touches, NameLosses) {
        let is_named = |touched: &Touched| {
            matches!(touched.target.recordable(redactor), Some(Cow::Borrowed(_)))
        };
        let is_redacted =
            |touches: &Touches| touches.all().iter().any(|one| one.target.is_redacted());
        if self.all().iter().all(is_named) {
            let losses = NameLosses { is_redacted: is_redacted(&self), is_omitted: false };
            return (self, losses);
        }
        let named = |touched: &Touched| {
            let target = touched.target.recordable(redactor)?.into_owned();
            Some(Touched { target, access: touched.access })
        };
        let named: Vec<Touched> = self.all().iter().filter_map(named).collect();
        let is_omitted = named.len() < self.all().len();
        let touches = match self.basis() {
            Some(_)
                if named.is_empty() && self.all().iter().any(|it| it.target.is_unresolved()) =>
            {
                Touches::nothing(TargetBasis::UNREAD)
            }
            Some(_) if named.is_empty() => Touches::nothing(TargetBasis::TOO_LONG),
            Some(basis) => Touches::new(named, basis.clone()),
            None => Touches::recorded(named, None),
        };
        let is_redacted = is_redacted(&touches);
        (touches, NameLosses { is_redacted, is_omitted })
    }
}

impl Target {
    /// Returns the target under the name that a record may have: `[redacted]` for each segment with a
    /// part of a secret, and characters that end a line by their code points. Returns `None` if the
    /// name is too long, as a shortened one would be that of another resource, or if links decide
    /// which file it is.
    pub fn recordable(&self, redactor: &Redactor) -> Option<Cow<'_, Target>> {
        if self.is_unresolved() {
            return None;
        }
        let (system, resource) = (redactor.text(&self.system), hidden(&self.resource, redactor));
        let resource = in_one_line(resource);
        if system.len() > SYSTEM_BYTES_MAX || resource.len() > RESOURCE_BYTES_MAX {
            return None;
        }
        if let (Cow::Borrowed(_), Cow::Borrowed(_)) = (&system, &resource) {
            return Some(Cow::Borrowed(self));
        }
        let (system, resource) = (system.into_owned(), resource.into_owned());
        Some(Cow::Owned(Target { system, resource }))
    }

    fn is_redacted(&self) -> bool {
        let is_marked = |text: &String| text.contains("[redacted");
        is_marked(&self.resource) || is_marked(&self.system)
    }
}

/// Returns a name without the segments that a secret touches, from the first to the last, and those
/// that are one on their own.
fn hidden<'n>(name: &'n str, redactor: &Redactor) -> Cow<'n, str> {
    let name = match redactor.text(name) {
        Cow::Owned(redacted) => Cow::Owned(without_difference(name, &redacted)),
        Cow::Borrowed(_) => Cow::Borrowed(name),
    };
    if !name.split('/').any(|segment| is_secret(segment, redactor)) {
        return name;
    }
    let shown = |segment| if is_secret(segment, redactor) { REDACTED } else { segment };
    Cow::Owned(name.split('/').map(shown).collect::<Vec<_>>().join("/"))
}

/// Reports whether a segment is a secret that the slash before it conceals: `token=…`, or the user
/// and password of an address that was written as a path.
fn is_secret(segment: &str, redactor: &Redactor) -> bool {
    let is_changed = |text: &str| matches!(redactor.text(text), Cow::Owned(_));
    segment.contains(['=', ':'])
        && (is_changed(segment) || segment.contains('@') && is_changed(&format!("x://{segment}/")))
}

/// Returns a name without the segments in which its redacted form differs.
fn without_difference(name: &str, redacted: &str) -> String {
    let same = |(one, other): &(u8, u8)| one == other;
    let start = name.bytes().zip(redacted.bytes()).take_while(same).count();
    let room = name.len().min(redacted.len()) - start;
    let end = name.bytes().rev().zip(redacted.bytes().rev()).take(room).take_while(same).count();
    without_segments(name, start, name.len() - end)
}

/// Replaces each segment that lies at least in part between two places.
fn without_segments(name: &str, start: usize, end: usize) -> String {
    let mut at = 0;
    let segment = |segment| {
        let (first, last) = (at, at + str::len(segment));
        at = last + 1;
        let is_touched = first < end.max(start + 1) && start < last;
        if is_touched { REDACTED } else { segment }
    };
    name.split('/').map(segment).collect::<Vec<_>>().join("/")
}

/// Writes characters that end a line, or a text, by their code points: `⟨U+000A⟩`.
fn in_one_line(name: Cow<'_, str>) -> Cow<'_, str> {
    if !name.contains(is_break) {
        return name;
    }
    let mut shown = String::with_capacity(name.len() + 16);
    for char in name.chars() {
        if is_break(char) {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(char)));
        } else {
            shown.push(char);
        }
    }
    Cow::Owned(shown)
}

/// Reports whether a key holds the words of a command, in which a secret follows its flag.
fn is_command(key: &str) -> bool {
    let word = key.rsplit(['_', '-']).next().unwrap_or_default().to_ascii_lowercase();
    ["arg", "args", "arguments", "argv", "cmd", "command"].contains(&word.as_str())
}

/// The secrets that a call's arguments contain. A name may have one in another case, in which it is
/// not recognised.
#[derive(Clone, Debug, Default)]
pub struct SecretTexts(Vec<String>);

impl SecretTexts {
    /// Compares arguments with their redacted form. Returns the secrets in their texts, and the
    /// arguments without the values that only their keys tell to be secret.
    pub fn of(
        sent: &Map<String, Value>,
        redacted: &Map<String, Value>,
        redactor: &Redactor,
    ) -> (SecretTexts, Map<String, Value>) {
        let (mut secrets, mut named) = (SecretTexts::default(), sent.clone());
        secrets.compare_members(&mut named, redacted, redactor);
        (secrets, named)
    }

    fn compare_members(
        &mut self,
        sent: &mut Map<String, Value>,
        redacted: &Map<String, Value>,
        redactor: &Redactor,
    ) {
        for (key, value) in sent {
            match (value, redacted.get(key)) {
                (Value::Array(sent), Some(Value::Array(redacted))) => {
                    if *sent != *redacted
                        && !is_command(key)
                        && redactor.hides_alone(sent, redacted)
                    {
                        self.add_each(sent, redacted, redactor);
                    } else {
                        self.compare_items(sent, redacted, redactor);
                    }
                }
                (value, Some(redacted)) => self.compare(value, redacted, redactor),
                (_, None) => {}
            }
        }
    }

    fn compare_items(&mut self, sent: &mut [Value], redacted: &[Value], redactor: &Redactor) {
        for (value, redacted) in sent.iter_mut().zip(redacted) {
            self.compare(value, redacted, redactor);
        }
    }

    /// Takes each item of a list for itself: `--password` before a path hides the path only in a
    /// command.
    fn add_each(&mut self, sent: &mut [Value], redacted: &[Value], redactor: &Redactor) {
        for (value, redacted) in sent.iter_mut().zip(redacted) {
            match &*value {
                Value::String(text) => self.add(text, &redactor.text(text), redactor),
                Value::Number(_) => {}
                _ => self.compare(value, redacted, redactor),
            }
        }
    }

    fn compare(&mut self, sent: &mut Value, redacted: &Value, redactor: &Redactor) {
        match (&mut *sent, redacted) {
            (Value::Object(sent), Value::Object(redacted)) => {
                self.compare_members(sent, redacted, redactor);
            }
            (Value::Array(sent), Value::Array(redacted)) => {
                self.compare_items(sent, redacted, redactor);
            }
            (Value::String(text), Value::String(clean)) if text == clean => {}
            (Value::String(text), Value::String(clean)) if redactor.text(text) == *clean => {
                self.add(text, clean, redactor);
            }
            (sent, redacted) if sent != redacted => *sent = redacted.clone(),
            _ => {}
        }
    }

    /// Adds what was removed, if it is one piece and a secret wherever it stands: what is one only
    /// for the words before it may be a name elsewhere.
    fn add(&mut self, text: &str, clean: &str, redactor: &Redactor) {
        let Some((before, rest)) = clean.split_once("[redacted") else {
            return;
        };
        let after = rest.split_once(']').map_or("", |(_, after)| after);
        let secret = text.strip_prefix(before).and_then(|text| text.strip_suffix(after));
        let is_alone = |secret: &&str| {
            let alone = redactor.text(secret);
            alone
                .strip_prefix("[redacted")
                .and_then(|rest| rest.find(']'))
                .is_some_and(|end| end + "[redacted]".len() == alone.len())
        };
        self.0.extend(secret.filter(is_alone).map(str::to_ascii_lowercase));
    }

    /// Returns the target without the segments that contain one of the secrets, in any case. A file
    /// stays as it is until its links have been followed.
    #[must_use]
    pub fn hide(&self, target: Target) -> Target {
        if target.system == FILESYSTEM {
            return target;
        }
        self.0.iter().fold(target, |target, secret| {
            match target.resource.to_ascii_lowercase().find(secret.as_str()) {
                Some(at) => {
                    let resource = without_segments(&target.resource, at, at + secret.len());
                    Target { resource, ..target }
                }
                None => target,
            }
        })
    }
}
