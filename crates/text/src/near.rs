//! Near names: "did you mean" for servers, tools, commands and config keys.

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
}
