//! The processor time and memory of a process with all its children, as the kernel counts them.

use std::collections::HashMap;
use std::fs;

/// The unit of the times in `/proc/PID/stat`, the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Returns the processor time that a process, its children and those that have ended took.
pub(crate) fn cpu_seconds(root: u32) -> f64 {
    let times = tree(root).into_iter().filter_map(stat).map(|(_, ticks)| ticks);
    times.sum::<u64>() as f64 / TICKS_PER_SECOND
}

/// Returns the resident memory of a process and its children; what they share is counted for each.
pub(crate) fn rss_mb(root: u32) -> f64 {
    tree(root).into_iter().filter_map(rss_kb).sum::<u64>() as f64 / 1024.0
}

fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").expect("this is Linux").flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((pid, (parent, _))) = pid.and_then(|pid| Some((pid, stat(pid)?))) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        found.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    found
}

/// Returns the parent of a process and its ticks.
fn stat(pid: u32) -> Option<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name before the last parenthesis may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
    Some((fields.get(1)?.parse().ok()?, ticks))
}

fn rss_kb(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
