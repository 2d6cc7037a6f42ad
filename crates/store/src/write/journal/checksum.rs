//! CRC-32C (Castagnoli), the checksum of a journal's lines. It detects every flipped bit and every
//! burst of up to 32 bits. Eight tables let it take eight bytes at a time.

const POLYNOMIAL: u32 = 0x82f6_3b78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut rest = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            rest = if rest & 1 == 1 { (rest >> 1) ^ POLYNOMIAL } else { rest >> 1 };
            bit += 1;
        }
        tables[0][byte] = rest;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Returns the checksum of some bytes.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut sum = u32::MAX;
    for word in words {
        let [a, b, c, d, e, f, g, h] = *word;
        let [i, j, k, l] = (sum ^ u32::from_le_bytes([a, b, c, d])).to_le_bytes();
        sum = TABLES[7][usize::from(i)]
            ^ TABLES[6][usize::from(j)]
            ^ TABLES[5][usize::from(k)]
            ^ TABLES[4][usize::from(l)]
            ^ TABLES[3][usize::from(e)]
            ^ TABLES[2][usize::from(f)]
            ^ TABLES[1][usize::from(g)]
            ^ TABLES[0][usize::from(h)];
    }
    for byte in rest {
        let [low, ..] = sum.to_le_bytes();
        sum = (sum >> 8) ^ TABLES[0][usize::from(low ^ byte)];
    }
    !sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_values_come_out() {
        // The check value of the algorithm, and the vectors of RFC 3720, B.4.
        let ascending: Vec<u8> = (0..32).collect();
        for (bytes, expected) in [
            (&b"123456789"[..], 0xe306_9283),
            (&[0; 32], 0x8a91_36aa),
            (&[0xff; 32], 0x62a8_ab43),
            (&ascending, 0x46dd_794e),
            (b"", 0),
        ] {
            assert_eq!(crc32c(bytes), expected, "{bytes:?}");
        }
    }
}
