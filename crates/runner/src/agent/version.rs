//! Versions of agent programs, as they print them.

/// Returns the first three numbers separated by dots.
pub(super) fn version_of(text: &str) -> Option<String> {
    let is_version = |word: &&str| {
        let numbers: Vec<&str> = word.split('.').collect();
        let number =
            |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        numbers.len() == 3 && numbers.iter().all(number)
    };
    let words = text.split(|char: char| !(char.is_ascii_alphanumeric() || char == '.'));
    words.map(|word| word.trim_start_matches('v')).find(is_version).map(str::to_owned)
}

/// Returns the numbers of a version, to compare it with another.
pub(super) fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}
