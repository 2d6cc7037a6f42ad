//! Lists of words that are part of a program: text files with one word a line, read while the
//! program is compiled. Lines that begin with `#` are comments.

/// Includes a file of words as a sorted slice. A file that is not sorted, or has a word twice, does
/// not compile.
#[macro_export]
macro_rules! words {
    ($file:literal) => {{
        const LIST: &str = include_str!($file);
        const WORDS: [&str; $crate::words::count(LIST)] = $crate::words::sorted(LIST);
        &WORDS
    }};
}

/// Returns the number of words in a list.
pub const fn count(list: &str) -> usize {
    let (mut count, mut rest) = (0, list);
    while !rest.is_empty() {
        let (line, next) = split_line(rest);
        if is_word(line) {
            count += 1;
        }
        rest = next;
    }
    count
}

/// Returns the words of a list, which are sorted.
pub const fn sorted<const COUNT: usize>(list: &'static str) -> [&'static str; COUNT] {
    let mut words = [""; COUNT];
    let (mut at, mut rest) = (0, list);
    while !rest.is_empty() {
        let (line, next) = split_line(rest);
        if is_word(line) {
            assert!(at == 0 || precedes(words[at - 1], line), "the words of a list are sorted");
            words[at] = line;
            at += 1;
        }
        rest = next;
    }
    words
}

const fn split_line(text: &str) -> (&str, &str) {
    let mut end = 0;
    while end < text.len() && text.as_bytes()[end] != b'\n' {
        end += 1;
    }
    let (line, rest) = text.split_at(end);
    (line, if rest.is_empty() { rest } else { rest.split_at(1).1 })
}

const fn is_word(line: &str) -> bool {
    !line.is_empty() && line.as_bytes()[0] != b'#'
}

const fn precedes(one: &str, next: &str) -> bool {
    let (one, next) = (one.as_bytes(), next.as_bytes());
    let mut at = 0;
    while at < one.len() && at < next.len() {
        if one[at] != next[at] {
            return one[at] < next[at];
        }
        at += 1;
    }
    one.len() < next.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_a_word_on_each_line_that_is_no_comment() {
        const LIST: &str = "# Fruit.\napple\n\npear\npear tree\n# The last.\nplum";
        assert_eq!(sorted::<{ count(LIST) }>(LIST), ["apple", "pear", "pear tree", "plum"]);
        assert_eq!(count(""), 0);
    }

    #[test]
    #[should_panic = "sorted"]
    fn words_in_another_order_are_refused() {
        sorted::<2>("pear\napple\n");
    }

    #[test]
    #[should_panic = "sorted"]
    fn a_word_is_listed_once() {
        sorted::<2>("pear\npear\n");
    }
}
