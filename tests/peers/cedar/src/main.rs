//! The reference implementation of Cedar on what `bench/cedar --dump DIR` wrote: decisions a second
//! of this thread's processor time, and each decision, for comparison.
//!
//!     cedar-peer DIR DECISIONS

use std::{env, error, fs};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicyId, PolicySet, Request,
};

/// Nanoseconds that this thread has had a processor: what else the machine does counts little.
fn processor_ns() -> u64 {
    fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .expect("the kernel counts processor time")
}

fn requests(path: &str) -> Result<Vec<Request>, Box<dyn error::Error>> {
    let list: Vec<serde_json::Value> = serde_json::from_str(&fs::read_to_string(path)?)?;
    list.into_iter()
        .map(|one| {
            let uid = |name: &str| -> Result<EntityUid, Box<dyn error::Error>> {
                Ok(one[name].as_str().ok_or("not text")?.parse()?)
            };
            let context = Context::from_json_value(one["context"].clone(), None)?;
            Ok(Request::new(uid("principal")?, uid("action")?, uid("resource")?, context, None)?)
        })
        .collect()
}

/// The number in policy17, as parsing a file names its policies.
fn number(id: &PolicyId) -> usize {
    AsRef::<str>::as_ref(id).trim_start_matches("policy").parse().unwrap_or(usize::MAX)
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let words: Vec<String> = env::args().collect();
    let [_, folder, decisions] = words.as_slice() else {
        return Err("usage: cedar-peer DIR DECISIONS".into());
    };
    let start = processor_ns();
    let policies: PolicySet = fs::read_to_string(format!("{folder}/policies.cedar"))?.parse()?;
    let load_ms = (processor_ns() - start) as f64 / 1e6;
    let entities = Entities::from_json_file(fs::File::open(format!("{folder}/entities.json"))?, None)?;
    let requests = requests(&format!("{folder}/requests.json"))?;
    let authorizer = Authorizer::new();

    let start = processor_ns();
    let answers: Vec<_> = requests
        .iter()
        .map(|request| authorizer.is_authorized(request, &policies, &entities))
        .collect();
    let seconds = (processor_ns() - start) as f64 / 1e9;

    let mut out = String::new();
    for answer in &answers {
        let mut reasons: Vec<usize> = answer.diagnostics().reason().map(number).collect();
        reasons.sort_unstable();
        let errors = answer.diagnostics().errors().count();
        out += if answer.decision() == Decision::Allow { "allow" } else { "deny" };
        out += &format!(" {reasons:?} {errors}\n");
    }
    fs::write(decisions, out)?;
    println!(
        "{{\"requests\": {}, \"rate\": {:.1}, \"load_ms\": {load_ms:.1}}}",
        requests.len(),
        requests.len() as f64 / seconds
    );
    Ok(())
}
