//! Secrets of 86 families, as tests plant them.

/// A secret as it is found in the wild.
pub struct Planted {
    /// With what makes it recognizable.
    pub written: String,
    /// The part that must not be kept.
    pub core: String,
}

/// Makes text that differs with every call and is the same in every run.
struct Noise(u64);

impl Noise {
    fn of(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            alphabet[usize::try_from(self.0 >> 33).unwrap() % alphabet.len()]
        };
        // A token without a digit is as rare as it looks.
        let mut text: String = (0..length).map(|_| next()).collect();
        text.replace_range(length - 1.., "7");
        text
    }

    fn word(&mut self, length: usize) -> String {
        self.of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", length)
    }

    fn hex(&mut self, length: usize) -> String {
        self.of("0123456789abcdef", length)
    }
}

/// `W` generates letters and digits, `H` hex digits, followed by their number; the longest of them
/// is the core.
const FORMS: [&str; 86] = [
    "ghp_{W36}",
    "github_pat_{W22}_{W59}",
    "glpat-{W20}",
    "xoxb-123456789012-{W24}",
    "https://hooks.slack.com/services/T0000/B0000/{W24}",
    "sk-proj-{W48}",
    "sk-ant-api03-{W60}",
    "AIza{W35}",
    "GOCSPX-{W28}",
    "ya29.{W60}",
    "sk_live_{W24}",
    "npm_{W36}",
    "pypi-AgEIcHlwaS5vcmc{W80}",
    "hf_{W34}",
    "dop_v1_{H64}",
    "shpat_{H32}",
    "AGE-SECRET-KEY-1{W58}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{W43}",
    "-----BEGIN PRIVATE KEY----- {W64} -----END PRIVATE KEY-----",
    "SG.{W22}.{W43}",
    "hvs.{W24}",
    "hvb.{W100}",
    "s.{W24}",
    "ATATT3{W180}",
    "ntn_{W46}",
    "secret_{W43}",
    "lin_api_{W40}",
    "dp.pt.{W43}",
    "dapi{H32}",
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{W27}",
    "https://discord.com/api/webhooks/123456789/{W68}",
    "123456789:AA{W33}",
    "SK{H32}",
    "key-{H32}",
    "abc8Q~{W34}",
    "glsa_{W32}_{H8}",
    "sq0atp-{W22}",
    "HRKU-{W60}",
    "dckr_pat_{W27}",
    "sntryu_{H64}",
    "https://h.example/f?sv=2022&sig={W43}%3D",
    "https://h.example/f?X-Amz-Signature={H64}",
    "https://h.example/f?X-Amz-Security-Token={W60}",
    "https://h.example/f?key={W39}",
    "https://h.example/f?code={W40}",
    "Authorization: Bearer {W40}",
    "Cookie: sessionid={W32}",
    "curl -u bob:{W12} https://h.example",
    "mysql -u root -p{W12} app",
    "psql --password {W12}",
    "[\"--password\", \"{W12}\"]",
    "machine h.example login bob password {W12}",
    "{\"auths\": {\"h.example\": {\"auth\": \"{W24}\"}}}",
    "postgres://bob:{W12}@db.example/app",
    "DB_PASS={W12}",
    "password: {W12}",
    "jwt={W40}",
    "bearer: {W20}",
    "AccountName=a;AccountKey={W86}==",
    "<password>{W12}</password>",
    "csk_{H64}",
    "cst_{H64}",
    "http://127.0.0.1:7420/#code=csl_{H64}",
    "csc_{H64}",
    "css_{H64}",
    "redis://:{W12}@db.example:6379/0",
    "base64:token {W40}",
    "kind: Secret\nmetadata:\n  name: app\ndata:\n  blob: {W24}\n",
    "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":{\"blob\":\"{W24}\"}}",
    "tvly-{W32}",
    "PMAK-{H24}-{H34}",
    "https://a.blob.core.windows.net/c?sv=2022-11-02&amp;sig={W43}%3D",
    "CREATE USER 'bob' IDENTIFIED BY '{W12}'",
    "ALTER ROLE bob WITH PASSWORD '{W12}'",
    "SET PASSWORD FOR 'bob'@'h' = '{W12}'",
    "client-key-data: LS0tLS1CRUdJTi{W60}",
    "00{W40}",
    "https://a.webhook.office.com/webhookb2/0190f3e2-7a51@0190f3e2-7a51/IncomingWebhook/{H32}/1",
    "https://prod.logic.azure.com/workflows/a/invoke?sp=%2Ftriggers&sig={W43}",
    "bob:$apr1${W8}${W22}",
    "bob:{SHA}{W27}=",
    "root:$6${W8}${W86}:19000",
    "PuTTY-User-Key-File-3: x\nPrivate-Lines: 1\n{W60}\nPrivate-MAC: {H8}\n",
    "ConvertTo-SecureString '{W12}' -AsPlainText -Force",
    "01000000d08c9ddf0115d1118c7a00c04fc297eb{H64}",
    "~/.netrc: machine h.example login bob password {W12}",
];

/// Returns a secret of each family, the same in every run.
pub fn planted() -> Vec<Planted> {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    FORMS.iter().map(|form| plant(form, &mut noise)).map(encoded).collect()
}

/// Encodes a secret whose form says so.
fn encoded(planted: Planted) -> Planted {
    match planted.written.strip_prefix("base64:") {
        Some(text) => {
            let written = base64(text);
            Planted { core: written[12..].to_owned(), written }
        }
        None => planted,
    }
}

fn base64(text: &str) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: String = text.bytes().map(|byte| format!("{byte:08b}")).collect();
    let digits = bits.as_bytes().chunks(6).map(|six| {
        let six = format!("{:0<6}", str::from_utf8(six).unwrap());
        char::from(DIGITS[usize::from_str_radix(&six, 2).unwrap()])
    });
    digits.collect()
}

fn plant(form: &str, noise: &mut Noise) -> Planted {
    let (mut written, mut core, mut rest) = (String::new(), String::new(), form);
    while let Some(open) = rest.find("{W").or_else(|| rest.find("{H")) {
        let (before, hole) = (&rest[..open], &rest[open..]);
        let close = hole.find('}').unwrap();
        let length = hole[2..close].parse().unwrap();
        let text = if hole.starts_with("{W") { noise.word(length) } else { noise.hex(length) };
        written.push_str(before);
        written.push_str(&text);
        if text.len() > core.len() {
            core = text;
        }
        rest = &hole[close + 1..];
    }
    Planted { written: written + rest, core }
}
