//! Links the program with packed relocations where the system reads them. Otherwise they are 1.7 MB
//! of the program, which every process reads when it starts.

use std::env;
use std::process::Command;

/// The first glibc that reads packed relocations; musl has read them since 1.2.4.
const PACKED: (u32, u32) = (2, 36);

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = |key: &str| env::var(key).unwrap_or_default();
    let packed = match (&*target("CARGO_CFG_TARGET_OS"), &*target("CARGO_CFG_TARGET_ENV")) {
        ("linux", "musl") => true,
        ("linux", "gnu") => is_native() && glibc().is_some_and(|version| version >= PACKED),
        _ => false,
    };
    if packed {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Reports whether the program is built for the system that builds it.
fn is_native() -> bool {
    env::var("HOST").is_ok_and(|host| env::var("TARGET").is_ok_and(|target| host == target))
}

/// Returns the version of this system's glibc.
fn glibc() -> Option<(u32, u32)> {
    let answer = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let answer = String::from_utf8(answer.stdout).ok()?;
    let (major, minor) = answer.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
