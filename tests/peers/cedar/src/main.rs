//! The reference implementation of Cedar on what `bench/cedar --dump DIR` wrote: decisions a second
//! of this thread's processor time, and each decision, for comparison.
//!
//!     cedar-peer DIR DECISIONS
//!
//! With --judge it fills in what it says of each test in DIR, which has the format of Cedar's corpus; see
//! random_cases.py.
//!
//!     cedar-peer --judge DIR

use std::{env, error, fs, path::Path};

use cedar_policy::{
    Authorizer, Context, Decision, Entities, EntityUid, PolicyId, PolicySet, Request, Schema,
    ValidationMode, ValidationWarning, Validator,
};
use serde_json::{Value, json};

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

#[derive(Default)]
struct Counts {
    valid: usize,
    allowed: usize,
    errors: usize,
}

fn judge_one(path: &Path, counts: &mut Counts) -> Result<(), Box<dyn error::Error>> {
    let mut test: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    let file = |name: &str| fs::read_to_string(path.with_file_name(test[name].as_str().unwrap_or_default()));
    let policies: PolicySet = file("policies")?.parse()?;
    let (schema, _) = Schema::from_cedarschema_str(&file("schema")?)?;
    let entities = Entities::from_json_str(&file("entities")?, Some(&schema))?;
    let found = Validator::new(schema.clone()).validate(&policies, ValidationMode::Strict);
    // To the published corpus and to us a scope that no action applies to is an error; newer versions of the crate warn.
    let applies = !found
        .validation_warnings()
        .any(|warning| matches!(warning, ValidationWarning::InvalidActionApplication(_)));
    let valid = found.validation_passed() && applies;
    counts.valid += usize::from(valid);
    test["shouldValidate"] = json!(valid);
    for one in test["requests"].as_array_mut().ok_or("no requests")? {
        let uid = |name: &str| EntityUid::from_json(one[name].clone());
        let (principal, action, resource) = (uid("principal")?, uid("action")?, uid("resource")?);
        let context = Context::from_json_value(one["context"].clone(), Some((&schema, &action)))?;
        let fits = Request::new(principal.clone(), action.clone(), resource.clone(), context.clone(), Some(&schema));
        let request = Request::new(principal, action, resource, context, None)?;
        let answer = Authorizer::new().is_authorized(&request, &policies, &entities);
        let allowed = answer.decision() == Decision::Allow;
        let reasons: Vec<String> = answer.diagnostics().reason().map(ToString::to_string).collect();
        let errors: Vec<String> = answer
            .diagnostics()
            .errors()
            .map(|cedar_policy::AuthorizationError::PolicyEvaluationError(error)| error.policy_id().to_string())
            .collect();
        counts.allowed += usize::from(allowed);
        counts.errors += errors.len();
        one["validateRequest"] = json!(fits.is_ok());
        one["decision"] = json!(if allowed { "allow" } else { "deny" });
        one["reason"] = json!(reasons);
        one["errors"] = json!(errors);
    }
    fs::write(path, test.to_string())?;
    Ok(())
}

/// Every N.json of a folder. Those with policies or entities that the reference refuses are named.
fn judge(folder: &str) -> Result<(), Box<dyn error::Error>> {
    let mut counts = Counts::default();
    let mut why = serde_json::Map::new();
    for number in 0.. {
        let path = Path::new(folder).join(format!("{number}.json"));
        if !path.exists() {
            break;
        }
        if let Err(error) = judge_one(&path, &mut counts) {
            why.insert(number.to_string(), json!(error.to_string()));
        }
    }
    let refused: Vec<u64> = why.keys().filter_map(|key| key.parse().ok()).collect();
    println!(
        "{}",
        json!({"refused": refused, "why": why, "valid": counts.valid, "allowed": counts.allowed, "errors": counts.errors})
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let words: Vec<String> = env::args().collect();
    if let [_, option, folder] = words.as_slice() {
        if option == "--judge" {
            return judge(folder);
        }
    }
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
