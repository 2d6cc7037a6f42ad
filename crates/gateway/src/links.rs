//! The real names of files: symbolic links are followed on separate threads and for a bounded time,
//! because a network mount that is gone never answers. What cannot be followed keeps the name that
//! the call gave. A file with several hard links keeps its name too, as none of them is the real
//! one, and gets a second name that all of them share.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use tokio::sync::oneshot;
use touch::targets::{FILESYSTEM, Target, Touches};

use crate::limits::{
    LINK_THREAD_IDLE, LINK_THREADS_MAX, LINK_TIME_MAX, LINKS_MAX, LINKS_WAITING_MAX,
};

/// Follows the links of an absolute path, in which `..` leads out of the folder that was reached. The
/// part that does not exist, or that may not be read, stays as it is. Returns `None` if the path has
/// neither links nor `..`, or too many links. Blocks.
pub fn real_path(path: &Path) -> Option<PathBuf> {
    let mut left: Vec<OsString> = names(path).rev().collect();
    let mut real = PathBuf::from("/");
    let (mut links, mut is_there, mut leads_up) = (0, true, false);
    while let Some(name) = left.pop() {
        if name == ".." {
            leads_up = true;
            real.pop();
            continue;
        }
        real.push(&name);
        if !is_there {
            continue;
        }
        match std::fs::read_link(&real) {
            Ok(target) => {
                links += 1;
                if links > LINKS_MAX {
                    return None;
                }
                real.pop();
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                left.extend(names(&target).rev());
            }
            // It is no link.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {}
            Err(_) => is_there = false,
        }
    }
    (links > 0 || leads_up).then_some(real)
}

/// Returns the names in a path, with each `..`.
fn names(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    })
}

/// Returns the target under its real name, if it is a file under another one. Blocks.
pub fn real_target(target: &Target) -> Option<Target> {
    if target.system() != FILESYSTEM {
        return None;
    }
    let real = real_path(Path::new(target.resource()))?;
    // What is no text can have no other name in an argument either.
    Target::of_path(real.to_string_lossy().into_owned())
}

/// Returns the name that all hard links to a file share, if it has several. Blocks.
fn shared_name(target: &Target) -> Option<Target> {
    if target.system() != FILESYSTEM {
        return None;
    }
    let file = std::fs::symlink_metadata(target.resource()).ok()?;
    if !file.is_file() || file.nlink() < 2 {
        return None;
    }
    // A number is given to another file once this one is gone.
    let born = file.created().ok().and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    let born = born.unwrap_or_default().as_nanos();
    Target::of_path(format!("inode:{}:{}:{born}", file.dev(), file.ino()))
}

pub(crate) type Follow = dyn Fn(&Target) -> Option<Target> + Send + Sync;

/// Follows links for the calls of one gate.
pub(crate) struct Links {
    shared: Arc<LinksState>,
}

struct LinksState {
    follow: Box<Follow>,
    time_max: Duration,
    queue: Mutex<LinkQueue>,
    wake: Condvar,
}

#[derive(Default)]
struct LinkQueue {
    waiting: VecDeque<LinkJob>,
    threads: usize,
    idle: usize,
    /// The starting times of the jobs under way, by a number.
    running: Vec<(u64, Instant)>,
    started: u64,
    is_closed: bool,
}

/// Work on the disk.
type LinkJob = Box<dyn FnOnce(&LinksState) + Send>;

/// The resources of a call, whose links are being followed.
pub(crate) struct FollowedTouches {
    /// The names that the call gave.
    pub(crate) given: Touches,
    /// The real names, unless they cannot differ.
    pub(crate) real: Option<AwaitedTouches>,
}

/// Resources under their real names, once those are known.
pub(crate) struct AwaitedTouches {
    real: oneshot::Receiver<Touches>,
    time_max: Duration,
}

impl FollowedTouches {
    /// Returns the real names, or the given ones if following the links takes too long.
    pub(crate) async fn known(self) -> Touches {
        let FollowedTouches { given, real } = self;
        match real {
            Some(real) => real.known().await.unwrap_or(given),
            None => given,
        }
    }
}

impl AwaitedTouches {
    /// Returns `None` if following the links takes too long.
    pub(crate) async fn known(self) -> Option<Touches> {
        tokio::time::timeout(self.time_max, self.real).await.ok()?.ok()
    }
}

impl Default for Links {
    fn default() -> Self {
        Links::new(Box::new(real_target), LINK_TIME_MAX)
    }
}

impl Links {
    pub(crate) fn new(follow: Box<Follow>, time_max: Duration) -> Links {
        let (queue, wake) = (Mutex::default(), Condvar::new());
        Links { shared: Arc::new(LinksState { follow, time_max, queue, wake }) }
    }

    /// Starts to follow the links of those resources that are files.
    pub(crate) fn follow(&self, given: Touches) -> FollowedTouches {
        self.name(given, |shared, touches| {
            touches.renamed(|target| (shared.follow)(target)).with_other_names(shared_name)
        })
    }

    /// Starts to find the names that files share, which have their real names already.
    pub(crate) fn identify(&self, given: Touches) -> FollowedTouches {
        self.name(given, |_, touches| touches.with_other_names(shared_name))
    }

    fn name(
        &self,
        given: Touches,
        work: impl FnOnce(&LinksState, Touches) -> Touches + Send + 'static,
    ) -> FollowedTouches {
        if given.all().iter().all(|touched| touched.target.system() != FILESYSTEM) {
            return FollowedTouches { given, real: None };
        }
        let touches = given.clone();
        let real = self.submit(move |shared| work(shared, touches));
        let real = real.map(|real| AwaitedTouches { real, time_max: self.shared.time_max });
        FollowedTouches { given, real }
    }

    /// Reports whether all those resources that are files exist on this machine.
    pub(crate) async fn are_here(&self, touches: &Touches) -> bool {
        let files = touches.all().iter().filter(|touched| touched.target.system() == FILESYSTEM);
        let files: Vec<PathBuf> = files.map(|file| file.target.resource().into()).collect();
        if files.is_empty() {
            return true;
        }
        let exist = self.submit(move |_| files.iter().all(|file| file.symlink_metadata().is_ok()));
        match exist {
            Some(exist) => {
                let exist = tokio::time::timeout(self.shared.time_max, exist).await;
                exist.is_ok_and(|exist| exist.unwrap_or(false))
            }
            None => false,
        }
    }

    /// Leaves work to a thread; returns `None` if none can take it soon.
    fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&LinksState) -> T + Send + 'static,
    ) -> Option<oneshot::Receiver<T>> {
        let (done, result) = oneshot::channel();
        let job = move |shared: &LinksState| {
            // A late result has no receiver.
            if !done.is_closed() {
                let _ = done.send(work(shared));
            }
        };
        LinksState::submit(&self.shared, Box::new(job)).then_some(result)
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.wake.notify_all();
    }
}

impl LinksState {
    /// Leaves a job to a thread; false if none can take it soon.
    fn submit(shared: &Arc<LinksState>, job: LinkJob) -> bool {
        let mut queue = shared.lock();
        if queue.waiting.len() >= LINKS_WAITING_MAX || queue.hangs(shared.time_max) {
            return false;
        }
        queue.waiting.push_back(job);
        if queue.idle >= queue.waiting.len() || queue.threads >= LINK_THREADS_MAX {
            shared.wake.notify_one();
            return true;
        }
        let worker = shared.clone();
        let thread = std::thread::Builder::new().name("links".to_owned());
        let is_started = thread.spawn(move || worker.work()).is_ok();
        queue.threads += usize::from(is_started);
        if queue.threads == 0 {
            queue.waiting.clear();
        }
        queue.threads > 0
    }

    fn work(&self) {
        let mut queue = self.lock();
        loop {
            if let Some(job) = queue.waiting.pop_front() {
                queue.started += 1;
                let number = queue.started;
                queue.running.push((number, Instant::now()));
                drop(queue);
                job(self);
                queue = self.lock();
                queue.running.retain(|(running, _)| *running != number);
            } else {
                queue.idle += 1;
                let (waited, slept) = self
                    .wake
                    .wait_timeout(queue, LINK_THREAD_IDLE)
                    .unwrap_or_else(PoisonError::into_inner);
                queue = waited;
                queue.idle -= 1;
                if queue.waiting.is_empty() && (slept.timed_out() || queue.is_closed) {
                    queue.threads -= 1;
                    return;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, LinkQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkQueue {
    /// Reports whether every thread is blocked by a path that does not answer.
    fn hangs(&self, time_max: Duration) -> bool {
        let late = self.running.iter().filter(|(_, since)| since.elapsed() > time_max);
        late.count() >= LINK_THREADS_MAX
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must fail")]

    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use touch::targets::{Access, TargetBasis, Touched};

    use super::*;

    fn touches(paths: &[&str]) -> Touches {
        let touched = paths.iter().map(|path| {
            let target = Target::new(FILESYSTEM, (*path).to_owned()).unwrap();
            Touched { target, access: Access::Write }
        });
        Touches::new(touched, TargetBasis::WORKSPACE)
    }

    fn resources(touches: &Touches) -> Vec<&str> {
        touches.all().iter().map(|touched| touched.target.resource()).collect()
    }

    /// Returns the real name of a path in the folder, relative to it.
    fn real(folder: &Path, path: &str) -> Option<String> {
        let real = real_path(&folder.join(path))?;
        Some(real.strip_prefix(folder).unwrap_or(&real).to_str().unwrap().to_owned())
    }

    #[test]
    fn links_are_followed_as_far_as_the_path_exists() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("real/deep")).unwrap();
        fs::write(dir.join("real/file"), "").unwrap();
        for (link, target) in [
            ("folder", "real"),
            ("real/up", "../real/deep"),
            ("absolute", dir.join("real/file").to_str().unwrap()),
            ("chain", "absolute"),
            ("absolute-up", dir.join("real/deep").to_str().unwrap()),
            ("dangling", "real/none"),
            ("dangling-up", "none/../real/file"),
            ("loop", "loop"),
            ("ring", "folder/../ring2"),
            ("ring2", "ring"),
        ] {
            symlink(target, dir.join(link)).unwrap();
        }
        for (path, expected) in [
            ("real/file", None),
            ("real/none/x", None),
            ("folder/file", Some("real/file")),
            ("folder/new", Some("real/new")),
            ("folder/new/er", Some("real/new/er")),
            ("folder/up/x", Some("real/deep/x")),
            ("chain", Some("real/file")),
            ("absolute/no-folder", Some("real/file/no-folder")),
            ("dangling", Some("real/none")),
            ("dangling-up", Some("real/file")),
            ("loop", None),
            ("ring/x", None),
            ("loop/../real/file", None),
            // A `..` leads out of the folder behind the link.
            ("folder/../real/file", Some("real/file")),
            ("folder/up/../file", Some("real/file")),
            ("absolute-up/../file", Some("real/file")),
            ("real/../real/./file", Some("real/file")),
        ] {
            assert_eq!(real(&dir, path).as_deref(), expected, "{path}");
        }
        assert_eq!(real_path(Path::new("/")), None);
        let long = format!("folder/{}", "x/".repeat(100_000));
        assert!(real(&dir, &long).is_some_and(|real| real.starts_with("real/x/")));
    }

    #[test]
    fn what_is_no_file_or_may_not_be_read_is_named_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let made = std::process::Command::new("mkfifo").arg(dir.join("fifo")).status().unwrap();
        assert!(made.success());
        fs::create_dir(dir.join("closed")).unwrap();
        symlink("fifo", dir.join("to-fifo")).unwrap();
        symlink("closed", dir.join("to-closed")).unwrap();
        fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
        // Nothing is opened, so that a pipe without a writer does not block.
        assert_eq!(real(&dir, "to-fifo").as_deref(), Some("fifo"));
        assert_eq!(real(&dir, "to-closed/x").as_deref(), Some("closed/x"));
        fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(real_path(Path::new("/a\0b/c")), None);
    }

    #[tokio::test]
    async fn two_names_of_one_file_are_one_resource() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::write(dir.join("file"), "").unwrap();
        symlink("file", dir.join("link")).unwrap();
        let paths = [dir.join("link"), dir.join("file"), dir.join("other")];
        let paths: Vec<&str> = paths.iter().map(|path| path.to_str().unwrap()).collect();
        let real = Links::default().follow(touches(&paths)).known().await;
        assert_eq!(resources(&real), [paths[1], paths[2]]);
        assert_eq!(real.basis(), Some(&TargetBasis::WORKSPACE));
        assert!(Links::default().are_here(&touches(&paths[..2])).await);
        assert!(!Links::default().are_here(&touches(&paths)).await);
        let web = Touches::reported(Target::new("web", "/x".to_owned()), Access::Read);
        let followed = Links::default().follow(web.clone());
        assert!(followed.real.is_none() && followed.given == web);
    }

    #[tokio::test]
    async fn hard_links_share_a_name_beside_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        fs::write(dir.join("one"), "").unwrap();
        fs::hard_link(dir.join("one"), dir.join("two")).unwrap();
        symlink("two", dir.join("link")).unwrap();
        fs::write(dir.join("alone"), "").unwrap();
        let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        let named = async |name: &str| {
            let touches = touches(&[&path(name)]);
            let real = Links::default().follow(touches.clone()).known().await;
            let known = Links::default().identify(touches).known().await;
            let names = |it: &Touches| -> Vec<String> {
                resources(it).into_iter().map(str::to_owned).collect()
            };
            (names(&real), names(&known))
        };
        let (one, two) = (named("one").await.0, named("two").await.0);
        assert_eq!((&*one[0], &*two[0], one.len()), (&*path("one"), &*path("two"), 2));
        assert_eq!(one[1], two[1]);
        assert!(one[1].starts_with("inode:"), "{one:?}");
        assert_eq!(named("link").await.0, two);
        assert_eq!(named("one").await.1, one);
        assert_eq!(named("link").await.1, [path("link")], "it is no file itself");
        // A folder has several links, and a file that is left alone has one.
        fs::remove_file(dir.join("two")).unwrap();
        for name in ["", "alone", "one", "none"] {
            assert_eq!(named(name).await.0.len(), 1, "{name}");
        }
    }

    /// A resolver that answers for `/dead/…` only once it is released.
    fn hanging(release: mpsc::Receiver<()>, asked: Arc<AtomicUsize>) -> Links {
        let release = Mutex::new(release);
        let follow = move |target: &Target| {
            asked.fetch_add(1, Ordering::SeqCst);
            if target.resource().starts_with("/dead/") {
                let _ = release.lock().unwrap().recv();
            }
            Target::new(FILESYSTEM, format!("/real{}", target.resource()))
        };
        Links::new(Box::new(follow), Duration::from_millis(50))
    }

    #[tokio::test]
    async fn a_mount_that_hangs_costs_links_and_never_a_call() {
        let (release, released) = mpsc::channel();
        let asked = Arc::new(AtomicUsize::new(0));
        let links = hanging(released, asked.clone());
        for n in 0..LINK_THREADS_MAX {
            let alive = links.follow(touches(&["/alive"])).known().await;
            assert_eq!(resources(&alive), ["/real/alive"], "after {n} that hang");
            let path = format!("/dead/{n}");
            let dead = links.follow(touches(&[&path])).known().await;
            assert_eq!(resources(&dead), [path]);
        }
        let before = asked.load(Ordering::SeqCst);
        let late = || links.shared.lock().hangs(links.shared.time_max);
        assert!(late(), "each thread was waited for in vain");
        let other = links.follow(touches(&["/alive"]));
        assert!(other.real.is_none(), "nobody waits any more");
        assert_eq!(resources(&other.known().await), ["/alive"]);
        assert_eq!(asked.load(Ordering::SeqCst), before);
        drop(release);
        while late() {
            tokio::task::yield_now().await;
        }
        let again = links.follow(touches(&["/alive"])).known().await;
        assert_eq!(resources(&again), ["/real/alive"], "the mount is back");
    }
}
