//! rsigma on the rules and events that bench/sigma.py gives both: events a second of this thread's
//! processor time, and which rules match which line.
//!
//!     sigma-peer RULES EVENTS.jsonl MATCHES

use std::fmt::Write as _;
use std::path::Path;
use std::{env, error, fs};

use rsigma_eval::{Engine, JsonEvent};
use rsigma_parser::parse_sigma_directory;

/// Nanoseconds that this thread has had a processor: what else the machine does counts little.
fn processor_ns() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .expect("the kernel counts processor time")
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let words: Vec<String> = env::args().collect();
    let [_, rules, events, matches] = words.as_slice() else {
        return Err("usage: sigma-peer RULES EVENTS.jsonl MATCHES".into());
    };
    let collection = parse_sigma_directory(Path::new(rules))?;
    let mut engine = Engine::new();
    let refused = engine.add_rules(&collection.rules).len();
    let text = fs::read_to_string(events)?;
    let lines: Vec<&str> = text.lines().collect();

    let start = processor_ns();
    let mut found = Vec::with_capacity(lines.len());
    for line in &lines {
        let value: serde_json::Value = serde_json::from_str(line)?;
        let results = engine.evaluate(&JsonEvent::borrow(&value));
        found.push(
            results.into_iter().filter_map(|result| result.header.rule_id).collect::<Vec<_>>(),
        );
    }
    let seconds = (processor_ns() - start) as f64 / 1e9;

    let mut out = String::new();
    for (number, ids) in found.iter().enumerate() {
        for id in ids {
            writeln!(out, "{} {id}", number + 1)?;
        }
    }
    fs::write(matches, out)?;
    println!(
        "{{\"rules\": {}, \"refused\": {refused}, \"events\": {}, \"rate\": {:.0}}}",
        engine.rule_count(),
        lines.len(),
        lines.len() as f64 / seconds
    );
    Ok(())
}
