//! Chains of calls: every stack that ends in `burn` must be one that the program itself saw.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::exporter::Recording;
use crate::fewest;
use crate::interpreter::Interpreter;
use crate::truth;

/// Checks that each stack whose leaf is `burn` is a chain of the truth, frame by frame and line by line (the leaf's own
/// line moves on), and that each chain has as many samples as its CPU time at `rate` a second says.
///
/// # Panics
/// When one does not.
pub fn every_call_took_place(python: &Interpreter, truth: &Value, recording: &Recording, rate: f64) {
    let stacks = recording.of(truth::pid(&truth["pid"]));
    let mut chains = Vec::new();
    for (key, function) in truth::functions(truth) {
        for chain in truth::chains(function) {
            chains.push((key.clone(), chain, truth::float(&function["seconds"])));
        }
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.leaf().name == "burn") {
        let matching = chains.iter().find(|(_, chain, _)| {
            chain.len() == stack.frames.len()
                && chain.iter().zip(&stack.frames).take(chain.len() - 1).all(|(is, frame)| is.is(frame))
        });
        let Some((key, _, _)) = matching else {
            panic!("{python}: no call took place like {stack:?}\n{}", recording.tail());
        };
        *counts.entry(key).or_default() += stack.count;
    }
    let places = chains.iter().filter(|(_, chain, _)| chain.last().is_some_and(|leaf| leaf.name == "burn"));
    for (key, _, seconds) in places {
        let count = counts.get(key.as_str()).copied().unwrap_or_default();
        let expected = seconds * rate;
        assert!(
            count as f64 >= fewest(expected),
            "{python}: {key:?} has {count} samples for {expected:.0}\n{}",
            recording.tail()
        );
    }
    println!("{python}: {} places of calls, {} samples", counts.len(), counts.values().sum::<u64>());
}
