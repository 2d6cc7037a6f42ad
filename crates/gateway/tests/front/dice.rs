//! Deterministic random texts.

/// Deterministic random numbers.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }

    /// Returns JSON in spellings that no writer of ours would choose.
    pub(crate) fn json(&mut self, depth: u64) -> String {
        let numbers = ["1E2", "-0", "0.10", "1.0e+3", "123456789012345678901234567890", "7"];
        let texts = [r#""\u0041\/""#, r#""é日本""#, r#""\ud83d\ude00\n""#, r#""""#, r#"" \t""#];
        match self.roll(if depth == 0 { 3 } else { 5 }) {
            0 => self.pick(&numbers).to_owned(),
            1 => self.pick(&texts).to_owned(),
            2 => self.pick(&["null", "true", "false", "[ ]", "{ }"]).to_owned(),
            3 => {
                let items: Vec<String> = (0..self.roll(4)).map(|_| self.json(depth - 1)).collect();
                format!("[ {} ]", items.join(" ,"))
            }
            _ => {
                let count = self.roll(4);
                let member = |n: u64| format!("\"k{n}\" : {}", self.json(depth - 1));
                format!("{{ {}}}", (0..count).map(member).collect::<Vec<_>>().join(", "))
            }
        }
    }
}
