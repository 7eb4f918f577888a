//! Tools that count: callgrind and strace.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::{Instant, sleep};

use super::profile::Profile;

/// Time that strace may take to write its output after the end of the program.
const OUTPUT_TIMEOUT: Duration = Duration::from_secs(10);
const PROBE_PERIOD: Duration = Duration::from_millis(10);

/// Functions of the C library that allocate memory. Rust's allocator calls them, too.
const ALLOCATORS: [&str; 6] = [
    "malloc",
    "calloc",
    "realloc",
    "memalign",
    "aligned_alloc",
    "posix_memalign",
];

/// System calls that wait for sockets.
const WAITS: [&str; 5] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll"];

/// Tool that runs a program and counts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tool {
    /// Counts instructions in user space, and calls of allocators.
    Callgrind,
    /// Counts system calls.
    Strace,
}

/// Counts of a whole run, or of one request. A tool leaves out what it does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) instructions: f64,
    pub(super) mallocs: f64,
    pub(super) system_calls: f64,
    pub(super) waits: f64,
}

impl Totals {
    /// Returns the counts that `later` has more.
    pub(super) fn until(&self, later: &Self) -> Self {
        Self {
            instructions: later.instructions - self.instructions,
            mallocs: later.mallocs - self.mallocs,
            system_calls: later.system_calls - self.system_calls,
            waits: later.waits - self.waits,
        }
    }

    pub(super) fn each(&self, requests: f64) -> Self {
        Self {
            instructions: self.instructions / requests,
            mallocs: self.mallocs / requests,
            system_calls: self.system_calls / requests,
            waits: self.waits / requests,
        }
    }
}

impl Tool {
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Callgrind => "callgrind",
            Self::Strace => "strace",
        }
    }

    /// Returns how often all waves are repeated. Some system calls depend on time and would show
    /// among few requests. strace is fast enough for many.
    pub(super) const fn repeats(self) -> u64 {
        match self {
            Self::Callgrind => 1,
            Self::Strace => 8,
        }
    }

    /// Returns the program and the arguments that run another program and write the counts.
    ///
    /// strace runs beside the program, not above it (`-D`), so that signals reach the program.
    ///
    /// # Why valgrind runs under strace
    ///
    /// rustix looks for the kernel's vDSO to read the clock, and asks the kernel for its address
    /// (`PR_GET_AUXV`). valgrind does not map the vDSO. It hides the address everywhere else, but
    /// does not know this call, and the program crashes. Here the call fails. rustix then reads
    /// `/proc/self/auxv`, where valgrind hides the address. No other build is needed.
    pub(super) fn wrapper(self, output: &Path) -> Vec<String> {
        let output = output.display();
        let words = match self {
            Self::Callgrind => format!(
                "strace -D -f --seccomp-bpf -o /dev/null -e trace=prctl \
                 -e inject=prctl:error=EINVAL \
                 valgrind --tool=callgrind --callgrind-out-file={output}"
            ),
            Self::Strace => format!("strace -D -f -c -U calls,name -o {output}"),
        };
        words.split_ascii_whitespace().map(str::to_owned).collect()
    }

    /// Reads the output after the end of the program. The profile is that of callgrind.
    pub(super) async fn read(self, output: &Path) -> anyhow::Result<(Totals, Profile)> {
        let began = Instant::now();
        loop {
            let text = fs::read_to_string(output).unwrap_or_default();
            let counted = match self {
                Self::Callgrind => callgrind(&text),
                Self::Strace => strace(&text).map(|totals| (totals, Profile::default())),
            };
            if counted.is_some() || began.elapsed() > OUTPUT_TIMEOUT {
                return counted.with_context(|| {
                    format!("{} wrote no counts:\n{:.2000}", self.program(), text)
                });
            }
            sleep(PROBE_PERIOD).await;
        }
    }
}

/// Parses the output of callgrind: the sum of instructions, the calls of allocators, and what each
/// function costs itself. A line of costs belongs to the function above it, unless it follows a
/// line of calls: then it is the cost of the callee.
fn callgrind(text: &str) -> Option<(Totals, Profile)> {
    // A name stands where its number occurs first: `fn=(7) malloc`, then `cfn=(7)`.
    let mut names: HashMap<&str, &str> = HashMap::new();
    let (mut function, mut callee, mut is_call) = ("", "", false);
    let mut profile = Profile::default();
    let mut mallocs = 0.0;
    let mut instructions = None;
    for line in text.lines() {
        let named = line
            .strip_prefix("fn=")
            .or_else(|| line.strip_prefix("cfn="));
        if let Some(reference) = named {
            let (number, name) = reference.split_once(' ').unwrap_or((reference, ""));
            if !name.is_empty() {
                names.insert(number, name);
            }
            let name = names.get(number).copied().unwrap_or(number);
            if line.starts_with('c') {
                callee = name;
            } else {
                function = name;
            }
        } else if let Some(calls) = line.strip_prefix("calls=") {
            is_call = true;
            if ALLOCATORS.contains(&callee) {
                mallocs += calls.split(' ').next()?.parse::<f64>().ok()?;
            }
        } else if let Some(sum) = line.strip_prefix("totals: ") {
            instructions = sum.trim().parse().ok();
        } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
            let cost = line.split(' ').nth(1).and_then(|cost| cost.parse().ok());
            if !is_call {
                profile.add(function, cost.unwrap_or(0.0));
            }
            is_call = false;
        }
    }
    let totals = Totals {
        instructions: instructions?,
        mallocs,
        ..Totals::default()
    };
    Some((totals, profile))
}

/// Parses the output of strace: a line for each system call, and the sum as the last.
fn strace(text: &str) -> Option<Totals> {
    let mut totals = Totals::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(count), Some(name)) = (words.next(), words.next()) else {
            continue;
        };
        let Ok(count) = count.parse::<f64>() else {
            continue;
        };
        if name == "total" {
            return Some(totals);
        } else if WAITS.contains(&name) {
            totals.waits += count;
        } else {
            totals.system_calls += count;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_allocations_and_functions_are_parsed() {
        let text = "events: Ir\n\nob=(1) /lib/libc.so\nfl=(1)\nfn=(1) main\n0 5\n\
                    cfn=(2) malloc\ncalls=3 0 \n0 30\ncfn=(3) free\ncalls=9 0 \n0 9\n\n\
                    fn=(2)\n0 30\n\nfn=(4) other\n0 7\ncfn=(2)\ncalls=2 0 \n0 20\n\
                    cfn=(5) realloc\ncalls=1 0 \n0 9\n\ntotals: 110\n";
        let expected = Totals {
            instructions: 110.0,
            mallocs: 6.0,
            ..Totals::default()
        };
        let (totals, profile) = callgrind(text).unwrap();
        assert_eq!(totals, expected);
        assert_eq!(profile.table(2), "       30  malloc\n        7  other\n");
        assert!(callgrind(&text.replace("totals", "summary")).is_none());
    }

    #[test]
    fn system_calls_are_summed_by_strace() {
        let text = "    calls syscall\n--------- ----------------\n        7 read\n\
                            5 epoll_wait\n--------- ----------------\n       12 total\n";
        let totals = strace(text).unwrap();
        assert_eq!((totals.system_calls, totals.waits), (7.0, 5.0));
        assert_eq!(strace("    calls syscall\n"), None);
    }

    #[test]
    fn a_request_costs_what_more_requests_add() {
        let totals = |system_calls| Totals {
            system_calls,
            ..Totals::default()
        };
        let each = totals(1_000.0).until(&totals(1_640.0)).each(64.0);
        assert_eq!(each.system_calls, 10.0);
    }
}
