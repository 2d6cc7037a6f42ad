//! Attacks through files: project configuration, programs on disk and names of files.
