//! The thread that looks into processes: files and memory of targets are read here, so that a slow disk
//! or a thousand new processes never keep the ring buffers waiting.
//!
//! ```text
//! tracker ── urgent (exec, a starting interpreter) ──┐
//!         ── patient (found in /proc, may load one) ─┴→ detector ── answers → tracker (on a wake-up)
//! ```
//!
//! An answer carries the ticket of its question: the tracker drops it when the process has executed or
//! ended meanwhile. The thread ends when the tracker lets go of the channels.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded, select_biased};

use crate::interpreter::python::detect::detect_in;
use crate::interpreter::python::{Cache, Detected, NotPython};
use crate::process::growth::{self, Growth, MappedCode};
use crate::process::identity::ProcessIdentity;
use crate::process::stat;

/// Questions of each kind, and answers, that may wait: at some 0.5 ms an answer, half a second of work.
const QUEUE: usize = 1_024;

/// What is asked.
#[derive(Debug)]
pub enum Question {
    /// Whether a process is Python.
    Process {
        /// Given back with the answer.
        ticket: u64,
        /// Process id.
        pid: u32,
        /// Its start, clock ticks.
        start_ticks: u64,
        /// What it had mapped at the last look: without new code the answer is [`Outcome::Same`].
        seen: Option<MappedCode>,
        /// `interpreters_head` of the runtime that is walked.
        walked: Option<u64>,
    },
    /// Which processes there are beside those known (pid and start).
    List(Vec<(u32, u64)>),
}

/// What came of it.
#[derive(Debug)]
pub enum Answer {
    /// Of a process.
    Process {
        /// Of the question.
        ticket: u64,
        /// Process id.
        pid: u32,
        /// What it is.
        outcome: Outcome,
    },
    /// Of the list: known ones that have ended, and new ones, with their starts.
    List {
        /// Have ended.
        gone: Vec<(u32, u64)>,
        /// Were not known.
        new: Vec<(u32, u64)>,
    },
}

/// What a process is.
#[derive(Debug)]
pub enum Outcome {
    /// It has no new code.
    Same(MappedCode),
    /// A Python process.
    Python(Box<Detected>, Box<ProcessIdentity>, MappedCode),
    /// None (yet), and why; what it had mapped, if it has memory.
    Not(NotPython, Option<MappedCode>),
}

/// The tracker's end.
#[derive(Debug)]
pub struct Detector {
    urgent: Sender<Question>,
    patient: Sender<Question>,
    answers: Receiver<Answer>,
    wake: UnixStream,
}

impl Detector {
    /// Starts the thread.
    ///
    /// # Errors
    /// When there are no descriptors or threads left.
    pub fn spawn() -> io::Result<Self> {
        let (urgent, urgent_questions) = bounded(QUEUE);
        let (patient, patient_questions) = bounded(QUEUE);
        let (answer, answers) = bounded(QUEUE);
        let (wake, waker) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let worker = Worker { cache: Cache::new(), answer, waker };
        std::thread::Builder::new()
            .name("detect".into())
            .spawn(move || worker.run(&urgent_questions, &patient_questions))?;
        Ok(Self { urgent, patient, answers, wake })
    }

    /// Asks; false when the queue is full.
    pub fn ask(&self, question: Question, is_urgent: bool) -> bool {
        let queue = if is_urgent { &self.urgent } else { &self.patient };
        match queue.try_send(question) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Disconnected(_)) => {
                tracing::debug!("the thread that detects interpreters has ended");
                false
            }
        }
    }

    /// The next answer there is.
    pub fn answer(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }

    /// Readable when there are answers.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Makes [`Self::wake`] unreadable until there are further answers.
    pub fn rest(&self) {
        let mut bytes = [0; 64];
        while (&self.wake).read(&mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

struct Worker {
    cache: Cache,
    answer: Sender<Answer>,
    waker: UnixStream,
}

impl Worker {
    fn run(mut self, urgent: &Receiver<Question>, patient: &Receiver<Question>) {
        loop {
            let question = select_biased! {
                recv(urgent) -> question => question,
                recv(patient) -> question => question,
            };
            let Ok(question) = question else { return };
            let answer = match question {
                Question::Process { ticket, pid, start_ticks, seen, walked } => {
                    let outcome = self.look(pid, start_ticks, seen, walked);
                    Answer::Process { ticket, pid, outcome }
                }
                Question::List(known) => list(&known),
            };
            if self.answer.send(answer).is_err() {
                return;
            }
            // A full pipe has woken the tracker already.
            if let Err(error) = self.waker.write(&[1])
                && error.kind() != io::ErrorKind::WouldBlock
            {
                return;
            }
        }
    }

    fn look(&mut self, pid: u32, start_ticks: u64, seen: Option<MappedCode>, walked: Option<u64>) -> Outcome {
        let (now, maps) = match growth::look(pid, seen) {
            Ok(Growth::Same(now)) => return Outcome::Same(now),
            Ok(Growth::Changed(now, maps)) => (now, maps),
            Ok(Growth::Nothing) => return Outcome::Not(NotPython::NoRuntime, None),
            Err(error) => return Outcome::Not(NotPython::Unreadable(error.to_string()), None),
        };
        let found = detect_in(pid, start_ticks, &maps, walked, &mut self.cache);
        let error = match found {
            Ok(found) => match ProcessIdentity::read(pid, 0, Some(&found.version)) {
                Ok(identity) => return Outcome::Python(Box::new(found), Box::new(identity), now),
                Err(error) => NotPython::Unreadable(error.to_string()),
            },
            Err(error) => error,
        };
        Outcome::Not(error, Some(now))
    }
}

fn list(known: &[(u32, u64)]) -> Answer {
    let (gone, alive): (Vec<_>, Vec<_>) = known.iter().partition(|(pid, start)| stat::is_gone(*pid, *start));
    let known: HashSet<u32> = alive.iter().map(|(pid, _)| *pid).collect();
    let entries = fs::read_dir("/proc").into_iter().flatten();
    let new = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| !known.contains(pid))
        .filter_map(|pid| Some((pid, stat::read(pid).ok()?.start_ticks)))
        .collect();
    Answer::List { gone, new }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::poll;
    use std::time::Duration;

    fn answer(detector: &Detector) -> Answer {
        for _ in 0..1_000 {
            if let Some(answer) = detector.answer() {
                return answer;
            }
            poll::readable(&[detector.wake()], Duration::from_millis(50)).unwrap();
            detector.rest();
        }
        panic!("no answer");
    }

    #[test]
    fn answers_carry_their_ticket_and_lists_know_who_is_gone() {
        let detector = Detector::spawn().unwrap();
        let own = std::process::id();
        let start = stat::read(own).unwrap().start_ticks;
        let ask = |ticket, pid, seen| {
            let question = Question::Process { ticket, pid, start_ticks: start, seen, walked: None };
            assert!(detector.ask(question, true));
        };
        ask(7, own, None);
        let Answer::Process { ticket: 7, outcome: Outcome::Not(NotPython::NoRuntime, Some(seen)), .. } =
            answer(&detector)
        else {
            panic!("another answer")
        };
        ask(8, own, Some(seen));
        assert!(matches!(answer(&detector), Answer::Process { ticket: 8, outcome: Outcome::Same(_), .. }));
        ask(9, u32::MAX, None);
        let gone = answer(&detector);
        assert!(matches!(
            gone,
            Answer::Process { outcome: Outcome::Not(NotPython::Unreadable(_), None), .. }
        ));
        assert!(detector.ask(Question::List(vec![(own, start + 1)]), false));
        let Answer::List { gone, new } = answer(&detector) else { panic!("another answer") };
        assert_eq!(gone, [(own, start + 1)]);
        assert!(new.contains(&(own, start)), "its pid was used again: {new:?}");
        assert!(detector.ask(Question::List(vec![(own, start)]), false));
        let Answer::List { gone, new } = answer(&detector) else { panic!("another answer") };
        assert!(gone.is_empty() && !new.iter().any(|(pid, _)| *pid == own), "{new:?}");
    }
}
