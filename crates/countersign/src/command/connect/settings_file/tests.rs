//! Edits of other programs at every moment at which they could be lost.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

pub(super) mod moment {
    use std::cell::RefCell;
    use std::path::Path;

    type Meddler = Box<dyn FnMut(&Path)>;

    thread_local! {
        static MEDDLER: RefCell<Option<Meddler>> = const { RefCell::new(None) };
    }

    pub(in super::super) fn reached(path: &Path) {
        let meddler = MEDDLER.with(|meddler| meddler.borrow_mut().take());
        if let Some(mut meddle) = meddler {
            meddle(path);
            MEDDLER.with(|meddler| *meddler.borrow_mut() = Some(meddle));
        }
    }

    /// Calls a closure at each moment of this thread's writing.
    pub(super) fn each(meddle: impl FnMut(&Path) + 'static) {
        MEDDLER.with(|meddler| *meddler.borrow_mut() = Some(Box::new(meddle)));
    }
}

/// The ways in which programs write their settings.
#[derive(Clone, Copy, Debug)]
enum Manner {
    ByRename,
    InPlace,
    /// The file was opened before, and is written through that.
    Opened,
}

const MANNERS: [Manner; 3] = [Manner::ByRename, Manner::InPlace, Manner::Opened];

fn write(manner: Manner, path: &Path, opened: Option<&mut File>, text: &str) {
    match (manner, opened) {
        (Manner::Opened, Some(file)) => {
            file.set_len(0).unwrap();
            file.rewind().unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        (Manner::ByRename, _) => {
            let new = path.with_extension("theirs");
            fs::write(&new, text).unwrap();
            fs::rename(new, path).unwrap();
        }
        (Manner::InPlace | Manner::Opened, _) => fs::write(path, text).unwrap(),
    }
}

/// Adds our line to a text once.
fn ours(now: Option<&str>) -> Result<Option<String>, Failure> {
    let now = now.unwrap_or_default();
    Ok(Some(if now.contains("ours\n") { now.to_owned() } else { format!("{now}ours\n") }))
}

fn in_folder(work: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    work(&folder.path().canonicalize().unwrap());
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn two_hundred_edits_in_between_are_all_kept() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        let mut met = 0;
        for round in 0..200 {
            let (manner, at) = (MANNERS[round % 3], round / 3 % 3);
            fs::write(&path, "theirs\n").unwrap();
            let mut opened = matches!(manner, Manner::Opened)
                .then(|| OpenOptions::new().write(true).open(&path).unwrap());
            let mut moments = 0;
            moment::each(move |path| {
                if moments == at {
                    write(manner, path, opened.as_mut(), &format!("theirs\nedit {round}\n"));
                    // The program closes it.
                    opened = None;
                }
                moments += 1;
            });
            let file = SettingsFile::at(&path, None).unwrap();
            let mut calls = 0;
            file.replace(Access::Kept, &mut |now| {
                calls += 1;
                ours(now)
            })
            .unwrap_or_else(|failure| panic!("{manner:?} {at}: {}", failure.message()));
            met += usize::from(calls > 2);
            let expected = format!("theirs\nedit {round}\nours\n");
            assert_eq!(fs::read_to_string(&path).unwrap(), expected, "{manner:?} {at}");
        }
        moment::each(|_| {});
        assert_eq!(met, 200, "every edit came in between");
        assert_eq!(names(folder), ["settings.json"], "nothing is left beside it");
    });
}

#[test]
fn an_edit_in_between_that_cannot_be_read_stays_in_place() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        let removed: &mut Edit<'_> = &mut |_| Ok(None);
        for (edit, moments) in [(&mut ours as &mut Edit<'_>, 3), (removed, 1)] {
            for at in 0..moments {
                fs::write(&path, "theirs\n").unwrap();
                let mut moments = 0;
                moment::each(move |path| {
                    if moments == at {
                        let new = path.with_extension("theirs");
                        fs::write(&new, b"\xff").unwrap();
                        fs::rename(new, path).unwrap();
                    }
                    moments += 1;
                });
                let written = SettingsFile::at(&path, None).unwrap().replace(Access::Kept, edit);
                assert!(written.unwrap_err().message().contains("is not UTF-8"), "{at}");
                assert_eq!(fs::read(&path).unwrap(), b"\xff", "{at}");
                assert_eq!(names(folder), ["settings.json"], "{at}: nothing is left beside it");
            }
        }
        moment::each(|_| {});
    });
}

#[test]
fn a_file_that_another_program_has_open_waits_until_it_is_written() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        fs::write(&path, "theirs\n").unwrap();
        let mut opened = Some(OpenOptions::new().write(true).open(&path).unwrap());
        let mut moments = 0;
        moment::each(move |path| {
            moments += 1;
            // After the exchange and the way back.
            if moments == 4 {
                write(Manner::Opened, path, opened.as_mut(), "theirs\nlate edit\n");
                opened = None;
            }
        });
        SettingsFile::at(&path, None).unwrap().replace(Access::Kept, &mut ours).unwrap();
        moment::each(|_| {});
        let expected =
            if cfg!(target_os = "linux") { "theirs\nlate edit\nours\n" } else { "theirs\nours\n" };
        assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    });
}

#[test]
fn of_two_edits_in_between_the_older_is_kept_and_named() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        fs::write(&path, "theirs\n").unwrap();
        let mut moments = 0;
        moment::each(move |path| {
            moments += 1;
            // Before the exchange, and between it and the way back.
            if moments == 2 || moments == 3 {
                write(Manner::ByRename, path, None, &format!("theirs\nedit {moments}\n"));
            }
        });
        let failure = SettingsFile::at(&path, None)
            .unwrap()
            .replace(Access::Kept, &mut ours)
            .expect_err("there is no text that has both");
        moment::each(|_| {});
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs\nedit 3\n");
        let kept = names(folder).into_iter().find(|name| name != "settings.json").unwrap();
        assert_eq!(fs::read_to_string(folder.join(&kept)).unwrap(), "theirs\nedit 2\n");
        assert!(failure.message().contains(&kept), "{}", failure.message());
    });
}

#[test]
fn a_file_that_never_rests_is_left_alone() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        fs::write(&path, "theirs\n").unwrap();
        let mut moments = 0;
        moment::each(move |path| {
            moments += 1;
            write(Manner::ByRename, path, None, &format!("theirs\nedit {moments}\n"));
        });
        let failure = SettingsFile::at(&path, None)
            .unwrap()
            .replace(Access::Kept, &mut ours)
            .expect_err("somebody else writes all the time");
        moment::each(|_| {});
        assert!(failure.message().starts_with("CHANGED: "), "{}", failure.message());
        let last = fs::read_to_string(&path).unwrap();
        assert!(last.starts_with("theirs\nedit ") && !last.contains("ours"), "{last}");
    });
}

#[test]
fn a_new_file_never_replaces_another() {
    in_folder(|folder| {
        let path = folder.join("new/settings.json");
        moment::each(|path| {
            if !path.exists() {
                fs::write(path, "theirs\n").unwrap();
            }
        });
        SettingsFile::at(&path, None).unwrap().replace(Access::Kept, &mut ours).unwrap();
        moment::each(|_| {});
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs\nours\n");
    });
}

#[test]
fn a_file_is_removed_only_as_it_was_read() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        fs::write(&path, "ours\n").unwrap();
        let mut seen = Vec::new();
        SettingsFile::at(&path, None)
            .unwrap()
            .replace(Access::Kept, &mut |now| {
                seen.push(now.map(str::to_owned));
                if seen.len() == 1 {
                    fs::write(&path, "ours\nedit\n").unwrap();
                    return Ok(None);
                }
                Ok(now.map(str::to_owned))
            })
            .unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "ours\nedit\n");
        SettingsFile::at(&path, None).unwrap().replace(Access::Kept, &mut |_| Ok(None)).unwrap();
        assert_eq!(names(folder), Vec::<String>::new());
    });
}

#[test]
fn files_are_closed_to_others_where_it_is_asked_for() {
    in_folder(|folder| {
        let path = folder.join("settings.json");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(&path, "ours\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let file = SettingsFile::at(&path, None).unwrap();
        for (access, expected) in
            [(Access::Kept, 0o644), (Access::Private, 0o600), (Access::Mode(0o640), 0o640)]
        {
            file.replace(access, &mut ours).unwrap();
            assert_eq!(mode(), expected, "{access:?}");
        }
    });
}

#[test]
fn what_writing_would_take_from_somebody_is_refused() {
    in_folder(|folder| {
        let refusal = |path: &Path| {
            let file = SettingsFile::at(path, Some(folder));
            file.and_then(|file| file.replace(Access::Kept, &mut ours))
                .expect_err("it is refused")
                .message()
                .to_owned()
        };
        let path = folder.join("settings.json");
        fs::write(&path, "theirs\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
        assert!(refusal(&path).contains("is read-only"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::hard_link(&path, folder.join("other")).unwrap();
        assert!(refusal(&path).contains("has 2 names"));
        symlink("nowhere", folder.join("dangling")).unwrap();
        assert!(refusal(&folder.join("dangling")).contains("leads nowhere"));
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join("x"), "theirs\n").unwrap();
        symlink(elsewhere.path().join("x"), folder.join("link")).unwrap();
        assert!(refusal(&folder.join("link")).contains("leads out of this folder"));
        symlink(elsewhere.path(), folder.join(".cursor")).unwrap();
        assert!(refusal(&folder.join(".cursor/new.json")).contains("leads out of this folder"));
        rustix::fs::mkfifoat(CWD, folder.join("pipe"), rustix::fs::Mode::RWXU).unwrap();
        assert!(refusal(&folder.join("pipe")).contains("not a regular file"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs\n");
    });
}
