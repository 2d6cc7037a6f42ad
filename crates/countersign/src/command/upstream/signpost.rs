//! An address that the person's browser opens and no other user sees. Every user of the machine can
//! read the arguments of a process, so the browser is given a file that leads to the address.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::control::encode;

/// The file, for as long as the browser may read it.
pub(super) struct Signpost {
    file: PathBuf,
}

impl Signpost {
    /// Has the browser open an address; `None` if there is no browser, or the address is not one of
    /// the web.
    pub(super) fn open(home: &Path, address: &str) -> Option<Signpost> {
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return None;
        }
        let file = home.join(format!("sign-in-{}.html", std::process::id()));
        let signpost = write(file, &page(address)).ok()?;
        let chosen = std::env::var("BROWSER").ok().filter(|browser| !browser.is_empty());
        let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let program = chosen.as_deref().and_then(|it| it.split(':').next()).unwrap_or(system);
        let mut command = Command::new(program);
        command.arg(file_address(&signpost.file)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().ok().map(|_| signpost)
    }
}

impl Drop for Signpost {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Writes a new file that only this user can read, in place of one that a killed process left.
fn write(file: PathBuf, text: &str) -> std::io::Result<Signpost> {
    match fs::remove_file(&file) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file)?;
    let signpost = Signpost { file };
    opened.write_all(text.as_bytes())?;
    Ok(signpost)
}

/// Returns a page that leads to an address at once, or by a click. It runs nothing.
fn page(address: &str) -> String {
    let escaped = address
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;");
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Sign in - Countersign</title>\
         <meta http-equiv=\"content-security-policy\" content=\"default-src 'none'\">\
         <meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={escaped}\">\
         <body><p><a href=\"{escaped}\">Sign in</a></p></body></html>\n"
    )
}

/// Returns the address of a file; `None` if its path is not text.
fn file_address(file: &Path) -> Option<String> {
    let parts: Vec<String> = file.to_str()?.split('/').map(encode).collect();
    Some(format!("file://{}", parts.join("/").replace("%2E", ".")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_address_cannot_leave_its_attribute() {
        let page = page("https://as.example/a?b=1&c=\"><script>alert('1')</script>");
        let escaped = "https://as.example/a?b=1&amp;c=&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)\
                       &lt;/script&gt;";
        assert!(page.contains(&format!("content=\"0;url={escaped}\"")), "{page}");
        assert!(page.contains(&format!("href=\"{escaped}\"")), "{page}");
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn only_the_web_is_opened() {
        let home = tempfile::tempdir().unwrap();
        for address in ["javascript:alert(1)", "file:///etc/passwd", "-x", ""] {
            assert!(Signpost::open(home.path(), address).is_none(), "{address}");
        }
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_file_is_private_has_an_address_and_goes() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("ä b#?%");
        fs::create_dir(&folder).unwrap();
        let file = folder.join("sign-in-1.html");
        fs::write(&file, "left").unwrap();
        let signpost = write(file.clone(), "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let address = file_address(&file).unwrap();
        assert!(address.ends_with("/%C3%A4%20b%23%3F%25/sign-in-1.html"), "{address}");
        drop(signpost);
        assert!(!file.exists());
    }
}
