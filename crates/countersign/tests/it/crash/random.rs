//! A generator of random numbers that a seed repeats: the seed of a failed run makes the same choices
//! again, though the moments of processes differ.

/// The variable that sets the seed.
const SEED: &str = "COUNTERSIGN_TEST_SEED";

/// Returns the seed that the environment sets, or a new one.
pub(super) fn seed() -> u64 {
    let given = std::env::var(SEED).ok().map(|seed| seed.parse().expect("the seed is a number"));
    given.unwrap_or_else(|| getrandom::u64().expect("there is randomness"))
}

/// The generator SplitMix64.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).expect("it fits");
        usize::try_from(self.next() % limit).expect("it fits")
    }

    pub(super) fn within(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// Reports true in so many cases of a hundred.
    pub(super) fn is_in(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
