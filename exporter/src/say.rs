//! Lines for a person. `println!` and `eprintln!` panic when nobody listens any more (`… | head -1`);
//! these go on: what was asked for is still done.

/// A line on stderr.
#[macro_export]
macro_rules! say {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        // Nobody listens: nothing to tell.
        writeln!(std::io::stderr(), $($arg)*).unwrap_or_default();
    }};
}

/// A line on stdout.
#[macro_export]
macro_rules! answer {
    ($($arg:tt)*) => {{
        use std::io::Write as _;
        // Nobody listens: nothing to tell.
        writeln!(std::io::stdout(), $($arg)*).unwrap_or_default();
    }};
}
