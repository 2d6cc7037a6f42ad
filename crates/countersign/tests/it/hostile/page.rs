//! Attacks on the reviewer: text that a page, a terminal or a log displays.
