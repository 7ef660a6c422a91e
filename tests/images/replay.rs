//! The walk of the kernel side over captured memory, without privilege: frame by frame what the
//! interpreter said of its own stack; and over memory that was spoilt on purpose: bounded, no panic, and
//! nothing but a part of the truth.
#![allow(
    clippy::panic,
    clippy::expect_used,
    reason = "a test stops at the first surprise and says what it saw"
)]

use std::path::PathBuf;

use exporter_common::limits::MAX_PYTHON_RECORDS;
use exporter_common::walk_status;
use exporter_tests::image::Image;

fn images() -> Vec<(PathBuf, Image)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("images");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("images")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 4, "3.11 twice, 3.12 and 3.13 are there: {paths:?}");
    paths.into_iter().map(|path| (path.clone(), Image::read(&path))).collect()
}

#[test]
fn every_frame_is_what_the_interpreter_says() {
    for (path, image) in images() {
        let walked = image.walk();
        assert_eq!(walked.status, walk_status::COMPLETE as u32, "{}", path.display());
        assert_eq!(walked.chain, image.chain, "{}", path.display());
        assert!(image.chain.len() > 45, "{}", path.display());
        assert!(image.chain.iter().any(|(name, ..)| name == "Größe.messen.<locals>.innen"));
    }
}

/// Every piece of memory is missing once.
#[test]
fn a_missing_piece_gives_a_part_of_the_truth() {
    for (path, image) in images() {
        for gone in image.pieces.keys() {
            let mut image = image.clone();
            image.pieces.remove(gone);
            let walked = image.walk();
            assert!(walked.chain.len() <= image.chain.len(), "{} without {gone:x}", path.display());
            let leaf_part = &image.chain[image.chain.len() - walked.chain.len()..];
            for (seen, truth) in walked.chain.iter().zip(leaf_part) {
                let unknown = seen.0 == "[unknown]";
                assert!(
                    unknown || seen == truth,
                    "{} without {gone:x}: {seen:?} for {truth:?}",
                    path.display()
                );
            }
            let complete = walked.status == walk_status::COMPLETE as u32;
            assert!(!complete || walked.chain.len() == image.chain.len(), "{}: {gone:x}", path.display());
        }
    }
}

/// Every word of memory points, in turn, to where it must not: to itself (a cycle), and out of all memory (a
/// size without end).
#[test]
fn a_spoilt_word_ends_in_bounds() {
    for (path, image) in images() {
        let pieces: Vec<u64> = image.pieces.keys().copied().collect();
        for word in pieces.iter().flat_map(|piece| (0..8).map(move |index| piece + 8 * index)) {
            for value in [word, u64::MAX] {
                let mut image = image.clone();
                assert!(image.patch(word, value));
                let walked = image.walk();
                let limit = MAX_PYTHON_RECORDS as u32;
                assert!(walked.records <= limit, "{}: {word:x} = {value:x}", path.display());
            }
        }
    }
}
