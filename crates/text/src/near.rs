//! Near names: "did you mean" for servers, tools, commands and config keys.

use std::cmp::Reverse;

/// Candidates farther than this from the written word are not typos.
const DISTANCE_MAX: usize = 3;

/// Returns the candidates nearest to `word`, best first, at most `limit`; none if nothing is close.
///
/// ASCII case is ignored, and a candidate that contains the word (or is contained in it) counts as
/// near, however long it is.
pub fn names<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let word = word.to_ascii_lowercase();
    let mut near: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((rank(&word, &candidate.to_ascii_lowercase())?, candidate)))
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(limit).map(|(_, candidate)| candidate).collect()
}

/// Returns the candidates nearest to a path, best first, at most `limit`: those that differ by a slip,
/// then those that end with it, those with the same last name, and those with the same first folders.
pub fn paths<'a>(
    path: &str,
    candidates: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let mut near: Vec<(usize, Reverse<usize>, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let shared = shared_folders(path, candidate);
            Some((path_rank(path, candidate, shared)?, Reverse(shared), candidate))
        })
        .collect();
    near.sort();
    near.dedup();
    near.into_iter().take(limit).map(|(_, _, candidate)| candidate).collect()
}

fn path_rank(path: &str, candidate: &str, shared: usize) -> Option<usize> {
    let (lower, other) = (path.to_ascii_lowercase(), candidate.to_ascii_lowercase());
    let length_max = lower.len().max(other.len());
    let distance = distance(&lower, &other);
    if distance <= DISTANCE_MAX.min(length_max.div_ceil(3)) {
        return Some(distance);
    }
    let before = other.strip_suffix(lower.trim_start_matches("./"));
    if before.is_some_and(|before| before.ends_with('/')) {
        return Some(DISTANCE_MAX + 1);
    }
    let [last, other_last] =
        [&lower, &other].map(|text| text.trim_end_matches('/').rsplit('/').next());
    if last == other_last {
        return Some(DISTANCE_MAX + 2);
    }
    (shared > 0).then_some(DISTANCE_MAX + 3)
}

/// Returns the number of folders with which both paths begin.
fn shared_folders(path: &str, other: &str) -> usize {
    let [path, other] = [path, other].map(|text| text.split('/').filter(|name| !name.is_empty()));
    path.zip(other).take_while(|(one, other)| one == other).count()
}

/// Returns `; did you mean 'a' or 'b'?`, or nothing.
pub fn hint(names: &[impl AsRef<str>]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("'{}'", name.as_ref())).collect();
    format!("; did you mean {}?", quoted.join(" or "))
}

/// Reports whether two words differ by one letter: one more, one less, another one, or two swapped.
pub fn differs_by_one(a: &str, b: &str) -> bool {
    // Most words of a vocabulary are ruled out by their length, or by their ends.
    let is_far = || {
        let (a, b) = (a.as_bytes(), b.as_bytes());
        a.first() != b.first() && a.last() != b.last()
    };
    a.len().abs_diff(b.len()) <= 4 && !is_far() && distance(a, b) == 1
}

fn rank(word: &str, candidate: &str) -> Option<usize> {
    let length_max = word.chars().count().max(candidate.chars().count());
    let allowed = DISTANCE_MAX.min(length_max.div_ceil(3));
    let distance = distance(word, candidate);
    if distance <= allowed {
        return Some(distance);
    }
    let part = word.len() >= 3
        && candidate.len() >= 3
        && (candidate.contains(word) || word.contains(candidate));
    part.then_some(DISTANCE_MAX + 1)
}

/// Returns the optimal string alignment distance: insertions, deletions, substitutions and
/// neighbour swaps.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    // Tool names and keys are short; longer words get no suggestion rather than a long wait.
    if a.len().abs_diff(b.len()) > DISTANCE_MAX || a.len() > 256 {
        return usize::MAX;
    }
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect::<Vec<_>>(), vec![0; b.len() + 1]];
    for i in 1..=a.len() {
        rows[2][0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            let mut best = (rows[1][j] + 1).min(rows[2][j - 1] + 1).min(rows[1][j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[0][j - 2] + 1);
            }
            rows[2][j] = best;
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_of_the_finger_are_found_and_strangers_are_not() {
        let known = ["read_file", "write_file", "list_directory", "echo"];
        assert_eq!(names("raed_file", known, 3), ["read_file"]);
        assert_eq!(names("Echo", known, 3), ["echo"]);
        assert_eq!(names("directory", known, 3), ["list_directory"]);
        assert!(names("kubernetes", known, 3).is_empty());
        assert!(names("", known, 3).is_empty());
    }

    #[test]
    fn paths_are_near_by_their_names_and_their_folders() {
        let known = ["/srv/app/main.rs", "/srv/app/notes.md", "/srv/web/index.html", "/usr/a"];
        for (path, expected) in [
            ("/srv/app/mian.rs", &["/srv/app/main.rs", "/srv/app/notes.md"][..]),
            ("/srv/APP/notes.md", &["/srv/app/notes.md", "/srv/app/main.rs"]),
            ("notes.md", &["/srv/app/notes.md"]),
            ("./app/main.rs", &["/srv/app/main.rs"]),
            ("/opt/web/index.html", &["/srv/web/index.html"]),
            ("/srv/web/style.css", &["/srv/web/index.html", "/srv/app/main.rs"]),
            ("/var/log", &[]),
            ("", &[]),
        ] {
            assert_eq!(paths(path, known, 2), expected, "{path}");
        }
    }
}
