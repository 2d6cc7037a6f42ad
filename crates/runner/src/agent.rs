//! The agent programs: how each is started so that our server is its source of tools, and how its
//! output is read.
