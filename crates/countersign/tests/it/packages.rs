//! The packages: built from the program under test and installed where nothing else is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testkit::foreign;
use testkit::program::countersign;
use testkit::run::{is_long_or_skipped, skipped};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[track_caller]
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(status.success(), "{command:?}: {stderr}");
    String::from_utf8(stdout).unwrap()
}

/// Packs the program under test, without the names of its functions, into a folder.
fn pack(dir: &Path) -> PathBuf {
    let stripped = dir.join("countersign");
    run(Command::new("strip").arg("-o").arg(&stripped).arg(countersign()));
    let out = dir.join("packages");
    let package = root().join("package");
    run(Command::new(package).arg("--program").args([&stripped, &out]).env("COMPRESSION", "1"));
    out
}

fn file(folder: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = files.filter(|path| path.to_str().unwrap().ends_with(end));
    found.next().unwrap_or_else(|| panic!("no file ends with {end}"))
}

#[track_caller]
fn check_version(program: &Path) {
    let version = run(Command::new(program).arg("--version"));
    assert_eq!(version, format!("countersign {}\n", env!("CARGO_PKG_VERSION")));
}

/// Packs the program under test as a wheel and installs that; returns the installed program.
pub(crate) fn installed_wheel(dir: &Path) -> PathBuf {
    install_wheel(&pack(dir), dir)
}

fn install_wheel(out: &Path, dir: &Path) -> PathBuf {
    let python = dir.join("python");
    run(Command::new("python3").args(["-m", "venv"]).arg(&python));
    let pip = python.join("bin/pip");
    run(Command::new(pip).args(["install", "--quiet", "--no-index"]).arg(file(out, ".whl")));
    let program = python.join("bin/countersign");
    check_version(&program);
    program
}

/// The wheel is installed where a new user's first hour is walked.
#[test]
fn every_other_package_installs_the_program() {
    if !foreign::are_here_or_skipped() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = pack(dir.path());
    run(Command::new("sha256sum").args(["--check", "--quiet", "SHA256SUMS"]).current_dir(&out));

    let prefix = dir.path().join("npm");
    let mut install = Command::new("npm");
    install.args(["install", "--global", "--offline", "--no-audit", "--no-fund", "--prefix"]);
    let version = env!("CARGO_PKG_VERSION");
    let cpu = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    install.arg(&prefix).arg(out.join(format!("countersign-linux-{cpu}-{version}.tgz")));
    install.arg(out.join(format!("countersign-{version}.tgz")));
    run(install.env("npm_config_cache", dir.path().join("npm-cache")));
    check_version(&prefix.join("bin/countersign"));
    let unknown = Command::new(prefix.join("bin/countersign")).arg("no-such").output().unwrap();
    assert_eq!(unknown.status.code(), Some(1), "the exit code passes");

    let debian = dir.path().join("debian");
    run(Command::new("dpkg-deb").arg("--extract").arg(file(&out, ".deb")).arg(&debian));
    check_version(&debian.join("usr/bin/countersign"));
    let about = run(Command::new("dpkg-deb").arg("--field").arg(file(&out, ".deb")));
    assert!(about.contains("Package: countersign\n"), "{about}");
    assert!(debian.join("usr/share/man/man1/countersign-serve.1.gz").exists());

    run(Command::new("tar").arg("-xzf").arg(file(&out, ".tar.gz")).arg("-C").arg(dir.path()));
    let unpacked = file(dir.path(), "-linux-x86_64");
    check_version(&unpacked.join("bin/countersign"));
}

/// Builds the program as it is released, which takes minutes.
#[test]
fn long_the_release_packages_are_static_and_installed() {
    if !is_long_or_skipped() {
        return;
    }
    let musl = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    let sysroot = run(Command::new("rustc").args(["--print", "sysroot"]));
    if !Path::new(sysroot.trim()).join("lib/rustlib").join(&musl).exists() {
        skipped(&format!("needs the Rust target {musl}"));
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("packages");
    run(Command::new(root().join("package")).arg(&out).current_dir(root()));
    let program = install_wheel(&out, dir.path());
    let headers = run(Command::new("readelf").arg("--program-headers").arg(&program));
    assert!(!headers.contains("INTERP"), "it needs no loader: {headers}");
    eprintln!("the released program has {} bytes", fs::metadata(&program).unwrap().len());
}

#[test]
fn smoke_the_units_and_the_image_name_what_exists() {
    let folder = root().join("packaging");
    let units = ["user", "system"].map(|name| folder.join(format!("systemd/{name}.service")));
    for unit in &units {
        let text = fs::read_to_string(unit).unwrap();
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let words: Vec<&str> = start.split(' ').skip(1).collect();
        run(Command::new(countersign()).args(words).arg("--help"));
    }
    let image = fs::read_to_string(folder.join("Dockerfile")).unwrap();
    for line in image.lines().filter(|line| line.starts_with("COPY ") && !line.contains("--from")) {
        let source = line.split(' ').nth(1).unwrap();
        assert!(root().join(source).exists(), "{line}");
    }
    for name in ["config.json", "container.json"] {
        let dir = tempfile::tempdir().unwrap();
        let mut check = Command::new(countersign());
        check.args(["config", "check", "--config"]).arg(folder.join(name));
        run(check.env("COUNTERSIGN_HOME", dir.path()).env("HOME", dir.path()));
    }
}
