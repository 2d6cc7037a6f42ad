//! Finds the words that a secret may begin with, in one pass over a text. Most places of a text are
//! dismissed by four bytes: a table says whether any word begins with them.

/// Bits of a hash of four bytes. With some hundred words, one place in a hundred passes by chance.
const HASH_BITS: u32 = 17;
const HASHES: usize = 1 << HASH_BITS;

/// Hashes that share an entry of `heads`.
const HASHES_PER_HEAD: usize = 4;

/// Sets the bit that distinguishes capitals from small letters. It also confuses some signs, which
/// costs a comparison and no more.
const FOLD: u32 = 0x2020_2020;
const FOLD_EIGHT: u64 = 0x2020_2020_2020_2020;

/// Places in eight bytes at which four of them begin.
const PLACES: usize = 5;

/// Words to search for. ASCII letters match in any case.
pub(super) struct Clues {
    words: Vec<String>,
    /// One bit for each hash: some word begins with such bytes.
    table: Box<[u64; HASHES / 64]>,
    /// The first of `order` for some hashes, counted from one.
    heads: Vec<u16>,
    /// The numbers of words by hash, the longest first.
    order: Vec<(u32, u16)>,
    /// Words too short for a hash. If there are any, every place is compared with them.
    short: Vec<u16>,
}

/// A word in a text, with its number.
pub(super) struct Clue {
    pub(super) number: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Clues {
    pub(super) fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Clues {
        let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        let (mut order, mut short) = (Vec::new(), Vec::new());
        for (word, number) in words.iter().zip(0_u16..) {
            match word.as_bytes() {
                [a, b, c, d, ..] => order.push((hash([*a, *b, *c, *d]), number)),
                [a, b, c] => {
                    let is_word = word.bytes().all(|byte| byte.is_ascii_alphabetic());
                    let next = (0x20..0x40).chain(0x60..0x80);
                    let next = next.filter(|byte: &u8| is_word || may_follow(*a, *byte));
                    order.extend(next.map(|d| (hash([*a, *b, *c, d]), number)));
                }
                _ => short.push(number),
            }
        }
        let length = |number: u16| words[usize::from(number)].len();
        order.sort_by_key(|(hash, number)| (*hash, usize::MAX - length(*number)));
        let mut table = Box::new([if short.is_empty() { 0 } else { u64::MAX }; HASHES / 64]);
        let mut heads = vec![0; HASHES / HASHES_PER_HEAD];
        for ((hash, _), place) in order.iter().zip(1_u16..) {
            table[*hash as usize / 64] |= 1 << (hash % 64);
            let head = &mut heads[*hash as usize / HASHES_PER_HEAD];
            *head = if *head == 0 { place } else { *head };
        }
        Clues { words, table, heads, order, short }
    }

    /// Finds the first word at or after `from` that something follows; of those that begin there,
    /// the longest.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Clue> {
        let bytes = text.as_bytes();
        let mut at = from;
        loop {
            let start = self.next_place(bytes, at)?;
            if let Some(clue) = self.longest(bytes, start) {
                return Some(clue);
            }
            at = start + 1;
        }
    }

    /// Finds the first place at or after `from` where a word may begin. Reading eight bytes at once
    /// and branching once for their places takes half the time of one place after the other.
    fn next_place(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        while let Some(eight) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
            let folded = u64::from_le_bytes(*eight) | FOLD_EIGHT;
            let places = (0..PLACES).fold(0_u32, |places, place| {
                #[expect(clippy::cast_possible_truncation, reason = "four of the eight bytes")]
                let four = (folded >> (8 * place)) as u32;
                places | u32::from(self.may_begin(hash_folded(four))) << place
            });
            if places != 0 {
                return Some(at + places.trailing_zeros() as usize);
            }
            at += PLACES;
        }
        let mut rest = bytes.get(at..)?.windows(4);
        let place = rest.position(|it| self.may_begin(hash([it[0], it[1], it[2], it[3]])))?;
        Some(at + place)
    }

    /// Reports whether a short text has any of the words, at its end too.
    pub(super) fn any(&self, text: &str) -> bool {
        let bytes = text.as_bytes();
        (0..bytes.len()).any(|start| {
            self.may_begin(hash(four(bytes, start))) && self.longest(bytes, start).is_some()
        })
    }

    fn may_begin(&self, hash: u32) -> bool {
        self.table[hash as usize / 64] >> (hash % 64) & 1 == 1
    }

    fn longest(&self, bytes: &[u8], start: usize) -> Option<Clue> {
        let hash = hash(four(bytes, start));
        let long = match self.heads[hash as usize / HASHES_PER_HEAD] {
            0 => &[],
            head => &self.order[usize::from(head) - 1..],
        };
        let long = long.iter().skip_while(|(other, _)| *other < hash);
        let long = long.take_while(|(other, _)| *other == hash);
        let mut numbers = long.map(|(_, number)| *number).chain(self.short.iter().copied());
        numbers.find_map(|number| {
            let word = self.words[usize::from(number)].as_bytes();
            let end = start + word.len();
            let is_here = bytes.get(start..end)?.eq_ignore_ascii_case(word);
            is_here.then_some(Clue { number: usize::from(number), start, end })
        })
    }
}

/// Returns four bytes of the text, with blanks after its end.
fn four(bytes: &[u8], start: usize) -> [u8; 4] {
    let byte = |at: usize| bytes.get(start + at).copied().unwrap_or(b' ');
    [byte(0), byte(1), byte(2), byte(3)]
}

/// Returns a hash that is the same for capitals and small letters.
fn hash(four: [u8; 4]) -> u32 {
    hash_folded(u32::from_le_bytes(four) | FOLD)
}

fn hash_folded(folded: u32) -> u32 {
    folded.wrapping_mul(0x9e37_79b1) >> (u32::BITS - HASH_BITS)
}

/// Reports whether a folded byte may follow the prefix of a token that begins with `first`: a user
/// may be missing (`://:`), and the salt of a hash begins with any digit of its alphabet.
fn may_follow(first: u8, byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'-' | b'.' | b'[' | 0x7f)
        || first == b':' && matches!(byte, b':' | b'%')
        || first == b'$' && byte == b'/'
}
