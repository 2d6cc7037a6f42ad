//! Processes that left the command's group, with `setsid` or as daemons do. On Linux they become
//! children of the supervisor when their parents end, and are killed with the rest; elsewhere they
//! cannot be tracked.

#[cfg(target_os = "linux")]
pub(super) use linux::{adopt, kill_all, reap};

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::{adopt, kill_all, reap};

#[cfg(target_os = "linux")]
mod linux {
    use std::time::Duration;

    use mcp::limits::CHILD_LAST_STEP;
    use rustix::process::{
        Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid,
    };

    /// The pause between two searches: each kill may bring up the children of the killed process.
    const PAUSE: Duration = Duration::from_millis(2);

    /// Makes orphans among the descendants our children from now on.
    pub(crate) fn adopt() {
        let _ = set_child_subreaper(Some(getpid()));
    }

    /// Reaps adopted children that have ended; `own` is waited for elsewhere.
    pub(crate) fn reap(own: Option<u32>) {
        let own = own.and_then(|id| Pid::from_raw(id.cast_signed()));
        for pid in children().into_iter().filter(|pid| Some(*pid) != own) {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }

    /// Kills every descendant, until none is left or the gate's time limit approaches.
    pub(crate) async fn kill_all() {
        let killing = async {
            loop {
                let left = children();
                if left.is_empty() {
                    return;
                }
                for pid in left {
                    let _ = kill_process(pid, Signal::KILL);
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        let _ = tokio::time::timeout(CHILD_LAST_STEP / 2, killing).await;
    }

    /// Returns our children, including those that ended but were not waited for.
    fn children() -> Vec<Pid> {
        let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
        let lists = tasks.filter_map(|task| {
            let list = std::fs::read_to_string(task.path().join("children")).ok()?;
            Some(list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<i32>>())
        });
        lists.flatten().filter_map(Pid::from_raw).collect()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    pub(crate) fn adopt() {}

    pub(crate) fn reap(_own: Option<u32>) {}

    pub(crate) async fn kill_all() {}
}
