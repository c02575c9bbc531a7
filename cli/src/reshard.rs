//! The subcommands shard and join: both take shards of one kind (a whole checkpoint is the only
//! shard of one) and make shards of another.

use crate::args::{Join, PlanArgs, Shard, Writing};
use crate::checkpoint::Checkpoint;
use crate::failure::{failure, invalid, refuse, Kind};
use crate::plan::{place, ready, whole_shapes, Cut, Placed, Plan, Values, READY};
use crate::progress::Progress;
use crate::report::{bytes_text, print, print_json, warn};
use crate::shards::{lay_out, rank_name, with_total, Manifest, Shards, VERSION};
use crate::staging::{check_directory, check_names, create, Staging, MANIFEST};
use crate::transfer::{End, Mover, Side, Whole};
use anyhow::{Context, Result};
use libsplit_formats::safetensors::{Header, Tensor};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// 'libsplit shard'.
pub fn shard(args: &Shard) -> Result<()> {
    if args.input.join(MANIFEST).is_file() {
        refuse!("{} holds shards: use 'libsplit join --tp N' on them", args.input.display());
    }
    let checkpoint = Checkpoint::open(&args.input)?;
    let (plan, text) = read_plan(&args.plan, &checkpoint)?;
    let shards = Shards::of_whole(checkpoint, plan, text);
    let job = Job {
        command: "shard",
        tp: Some(args.tp.into()),
        output: args.output.as_deref(),
        is_new_plan: true,
        strict: args.plan.strict,
        chunk: args.chunk,
        writing: &args.writing,
    };
    job.run(&shards)
}

/// 'libsplit join'.
pub fn join(args: &Join) -> Result<()> {
    let shards = open_shards(args)?;
    let job = Job {
        command: "join",
        tp: args.tp.map(usize::from),
        output: args.output.as_deref(),
        is_new_plan: args.plan.plan.is_some(),
        strict: args.plan.strict,
        chunk: args.chunk,
        writing: &args.writing,
    };
    job.run(&shards)
}

fn open_shards(args: &Join) -> Result<Shards> {
    if let [directory] = args.shards.as_slice() {
        if let Some(manifest) = Manifest::read(directory)? {
            if args.plan.plan.is_some() {
                refuse!("{} has its plan in {MANIFEST}: leave --plan out", directory.display());
            }
            return Shards::open(directory, manifest);
        }
        if args.plan.plan.is_none() {
            let shown = directory.display();
            invalid!(
                "{shown}: no {MANIFEST} in it: give the directory that 'libsplit shard' made, \
                      or all ranks in turn and --plan"
            );
        }
    }
    let ranks = args.shards.iter().map(|path| Checkpoint::open(path));
    let ranks = ranks.collect::<Result<Vec<_>>>()?;
    let (plan, text) = read_plan(&args.plan, &ranks[0])?;
    let whole = whole_shapes(&plan, &ranks[0].shapes(), ranks.len())?;
    Shards::of_ranks(ranks, plan, text, whole)
}

/// The plan that is asked for, and its text.
fn read_plan(args: &PlanArgs, checkpoint: &Checkpoint) -> Result<(Plan, String)> {
    let names = || READY.map(|(name, _)| name).join(", ");
    let Some(plan) = &args.plan else {
        refuse!("there is no plan: give --plan FILE, or the name of a ready one: {}", names());
    };
    let text = match ready(plan) {
        Some(text) => text.to_owned(),
        None => fs::read_to_string(plan)
            .with_context(|| format!("plan {plan} (ready plans are {})", names()))?,
    };
    let values: Values = args.set.iter().cloned().collect();
    let plan = Plan::parse(&text, &values, &checkpoint.config()?)
        .with_context(|| format!("plan {plan}"))?;
    Ok((plan, text))
}

/// What is to be made of shards.
struct Job<'a> {
    command: &'static str,
    /// For so many ranks, or one whole.
    tp: Option<usize>,
    output: Option<&'a Path>,
    /// Whether the plan is the user's, and not that of the shards, of which has been told before.
    is_new_plan: bool,
    strict: bool,
    chunk: u64,
    writing: &'a Writing,
}

/// A file to be made: its place below the output, its header as bytes, and where tensors are in it.
struct Made {
    name: PathBuf,
    header: Vec<u8>,
    data_bytes: u64,
    begins: HashMap<String, u64>,
}

impl Made {
    /// A file with this header, spelt like that or in this program's way.
    fn new(name: PathBuf, header: &Header, text: Option<&str>) -> Self {
        let bytes = text.map_or_else(
            || header.to_bytes(),
            |text| [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat(),
        );
        let begin = bytes.len() as u64;
        let at = |tensor: &Tensor| (tensor.name.clone(), begin + tensor.begin);
        let data_bytes = header.tensors.last().map_or(0, |tensor| tensor.end);
        let begins = header.tensors.iter().map(at).collect();
        Self { name, header: bytes, data_bytes, begins }
    }
}

impl Job<'_> {
    fn run(&self, shards: &Shards) -> Result<()> {
        // By the plan alone, also where nothing is cut: what matches nothing is told either way.
        let placed = place(&shards.plan, &shards.whole, self.tp.unwrap_or(1))?;
        self.warn(&placed)?;
        let placed = if self.tp.is_some() { placed } else { Placed::default() };
        let made = self.layout(shards, &placed)?;
        let (read, written) = match (self.output, self.tp) {
            (Some(output), Some(tp)) => self.write_ranks(shards, &placed, &made, output, tp)?,
            (Some(output), None) => self.write_whole(shards, &placed, made, output)?,
            (None, _) => (0, 0), // a dry run
        };
        self.tell(shards, &placed, read, written)
    }

    fn warn(&self, placed: &Placed) -> Result<()> {
        if self.strict && !placed.warnings.is_empty() {
            let all = placed.warnings.join("; ");
            return Err(failure(Kind::Refused, format!("{all} (--strict)")));
        }
        if self.is_new_plan && !self.writing.json {
            placed.warnings.iter().for_each(|warning| warn(warning));
        }
        Ok(())
    }

    /// The files to be made, for each of the shards' files one a rank.
    fn layout(&self, shards: &Shards, placed: &Placed) -> Result<Vec<Vec<Made>>> {
        let files = shards.files.iter().map(|file| {
            let whole = Header::parse(file.header.as_bytes(), file.data_bytes)?;
            let Some(tp) = self.tp else {
                let made = Made::new(file.name.clone().into(), &whole, Some(&file.header));
                return Ok(vec![made]);
            };
            let made = (0..tp).map(|rank| {
                let mut header = whole.clone();
                let shape = |tensor: &Tensor| match cut_of(placed, &tensor.name) {
                    Some(cut) => cut.shape_of(rank, &tensor.shape),
                    None => tensor.shape.clone(),
                };
                let shapes = header.tensors.iter().map(shape).collect();
                lay_out(&mut header, shapes)?;
                Ok(Made::new(Path::new(&rank_name(rank)).join(&file.name), &header, None))
            });
            made.collect()
        });
        files.collect()
    }

    fn write_ranks(
        &self,
        shards: &Shards,
        placed: &Placed,
        made: &[Vec<Made>],
        output: &Path,
        tp: usize,
    ) -> Result<(u64, u64)> {
        if self.writing.dry_run {
            check_directory(output, self.writing.force)?;
            return Ok((0, 0));
        }
        let staging = Staging::directory(output, self.writing.force)?;
        for rank in 0..tp {
            let directory = staging.path().join(rank_name(rank));
            fs::create_dir(&directory).with_context(|| output.display().to_string())?;
            if let Some(index) = &shards.index {
                let bytes = made.iter().map(|ranks| ranks[rank].data_bytes).sum();
                let json = serde_json::from_str(&index.text)?;
                save(&directory.join(&index.name), &with_total(&json, bytes), output)?;
            }
        }
        let done = self.write(shards, placed, made, staging.path(), output)?;
        let manifest = Manifest {
            version: VERSION,
            tp,
            plan: shards.plan_text.clone(),
            values: shards.plan.values.clone(),
            files: shards.files.clone(),
            index: shards.index.clone(),
        };
        let text = serde_json::to_string_pretty(&manifest)? + "\n";
        save(&staging.path().join(MANIFEST), &text, output)?;
        staging.publish_directory()?;
        Ok(done)
    }

    fn write_whole(
        &self,
        shards: &Shards,
        placed: &Placed,
        mut made: Vec<Vec<Made>>,
        output: &Path,
    ) -> Result<(u64, u64)> {
        let mut directory = output;
        if output.extension().is_some_and(|extension| extension == "safetensors") {
            let ([files], None) = (made.as_mut_slice(), &shards.index) else {
                refuse!(
                    "{}: there are {} files and an index: give a directory",
                    output.display(),
                    shards.files.len()
                );
            };
            files[0].name = output.file_name().unwrap_or_default().into();
            directory = match output.parent() {
                Some(parent) if parent != Path::new("") => parent,
                _ => Path::new("."),
            };
        }
        let name = |made: &Made| made.name.to_string_lossy().into_owned();
        let mut names: Vec<_> = made.iter().flatten().map(name).collect();
        names.extend(shards.index.as_ref().map(|index| index.name.clone()));
        if self.writing.dry_run {
            check_names(directory, &names, self.writing.force)?;
            return Ok((0, 0));
        }
        let staging = Staging::files_in(directory, &names, self.writing.force)?;
        let done = self.write(shards, placed, &made, staging.path(), directory)?;
        if let Some(index) = &shards.index {
            save(&staging.path().join(&index.name), &index.text, directory)?;
        }
        staging.publish_files(&names)?; // the index last: with it the set is complete
        Ok(done)
    }

    /// Writes all files; gives the bytes of tensors that were read and written.
    fn write(
        &self,
        shards: &Shards,
        placed: &Placed,
        made: &[Vec<Made>],
        staging: &Path,
        output: &Path,
    ) -> Result<(u64, u64)> {
        let bytes = shards.ranks.iter().map(Checkpoint::bytes).sum();
        let progress = Progress::new(bytes, self.writing.quiet);
        let mut mover = Mover::new(self.chunk, &progress);
        let cannot = |made: &Made| format!("cannot write {}", output.join(&made.name).display());
        // All at once, so that a full disk is known before the work begins.
        let mut files = Vec::new();
        for made in made.iter().flatten() {
            let path = staging.join(&made.name);
            drop(create(&path, &made.header, made.data_bytes).with_context(|| cannot(made))?);
            files.push(path);
        }
        for (index, destinations) in made.iter().enumerate() {
            let open = |made: &Made| {
                let file = File::options().write(true).open(staging.join(&made.name));
                file.with_context(|| cannot(made))
            };
            let files = destinations.iter().map(open).collect::<Result<Vec<_>>>()?;
            Self::write_file(shards, placed, index, (destinations, &files), output, &mut mover)?;
            for (file, made) in files.iter().zip(destinations) {
                file.sync_all().with_context(|| cannot(made))?;
            }
        }
        progress.finish();
        Ok((mover.read, mover.written))
    }

    /// Writes what becomes of one of the shards' files.
    fn write_file(
        shards: &Shards,
        placed: &Placed,
        index: usize,
        (made, files): (&[Made], &[File]),
        output: &Path,
        mover: &mut Mover,
    ) -> Result<()> {
        let parts: Vec<_> = shards.ranks.iter().map(|rank| &rank.parts[index]).collect();
        let open = |path: &PathBuf| File::open(path).with_context(|| path.display().to_string());
        let sources = parts.iter().map(|part| open(&part.path)).collect::<Result<Vec<_>>>()?;
        let source_paths: Vec<_> =
            parts.iter().map(|part| part.path.display().to_string()).collect();
        let made_path = |made: &Made| output.join(&made.name).display().to_string();
        let made_paths: Vec<_> = made.iter().map(made_path).collect();
        let begins: Vec<HashMap<_, _>> = parts
            .iter()
            .map(|part| {
                let begin = part.data_begin();
                let at = |tensor: &Tensor| (tensor.name.clone(), begin + tensor.begin);
                part.header.tensors.iter().map(at).collect()
            })
            .collect();
        // In the order of the first source, which is read from its beginning to its end.
        for tensor in &parts[0].header.tensors {
            let name = &tensor.name;
            let source = |rank: usize| End {
                file: &sources[rank],
                begin: begins[rank][name],
                path: &source_paths[rank],
            };
            let destination = |rank: usize| End {
                file: &files[rank],
                begin: made[rank].begins[name],
                path: &made_paths[rank],
            };
            let from = Side {
                ends: (0..sources.len()).map(source).collect(),
                cut: cut_of(&shards.placed, name),
            };
            let to = Side {
                ends: (0..files.len()).map(destination).collect(),
                cut: cut_of(placed, name),
            };
            let whole = Whole { dtype: tensor.dtype, shape: &shards.whole[name] };
            mover.copy(&whole, &from, &to).with_context(|| format!("tensor {name}"))?;
        }
        Ok(())
    }

    fn tell(&self, shards: &Shards, placed: &Placed, read: u64, written: u64) -> Result<()> {
        let tensors = shards.ranks[0].tensors().map(|tensor| {
            let name = &tensor.name;
            (tensor, &shards.whole[name], shards.plan.entry(name), cut_of(placed, name))
        });
        if self.writing.json {
            let tensors = tensors.map(|(tensor, shape, entry, cut)| {
                json!({
                    "name": tensor.name,
                    "dtype": tensor.dtype.name,
                    "shape": shape,
                    "pattern": entry.map(|entry| &shards.plan.entries[entry].pattern),
                    "axis": cut.map(|cut| cut.axis),
                    "rank_shape": cut.map_or(shape.clone(), |cut| cut.shape_of(0, shape)),
                })
            });
            return print_json(&json!({
                "command": self.command,
                "output": self.output,
                "dry_run": self.writing.dry_run,
                "tp": self.tp,
                "tp_before": shards.ranks.len(),
                "tensors": tensors.collect::<Vec<Value>>(),
                "warnings": self.warnings(shards)?,
                "bytes_read": read,
                "bytes_written": written,
            }));
        }
        if self.writing.quiet {
            return Ok(());
        }
        let mut text = String::new();
        if self.writing.dry_run {
            for (tensor, shape, entry, cut) in tensors {
                let (name, dtype) = (&tensor.name, tensor.dtype.name);
                let pattern = entry.map_or("", |entry| &shards.plan.entries[entry].pattern);
                let what = match cut {
                    Some(cut) => format!(
                        "cut on axis {}, {:?} a rank, by {pattern:?}",
                        cut.axis,
                        cut.shape_of(0, shape)
                    ),
                    None => "whole".into(),
                };
                writeln!(text, "{name}  {dtype} {shape:?}  {what}")?;
            }
        } else {
            let many = |count: usize, what| match count {
                1 => format!("1 {what}"),
                _ => format!("{count} {what}s"),
            };
            let ranks = |tp| many(tp, "rank");
            let tensors = many(shards.whole.len(), "tensor");
            let output = self.output.unwrap_or(Path::new(".")).display();
            let to = self.tp.map_or("the whole".into(), ranks);
            let from = ranks(shards.ranks.len());
            let from = if self.command == "shard" { String::new() } else { format!(" of {from}") };
            let (read, written) = (bytes_text(read), bytes_text(written));
            writeln!(text, "{tensors}{from} to {to} in {output}: {read} read, {written} written")?;
        }
        print(&text)
    }

    fn warnings(&self, shards: &Shards) -> Result<Vec<String>> {
        Ok(place(&shards.plan, &shards.whole, self.tp.unwrap_or(1))?.warnings)
    }
}

fn cut_of<'a>(placed: &'a Placed, name: &str) -> Option<&'a Cut> {
    placed.tensors.get(name).and_then(|(_, cut)| cut.as_ref())
}

/// Writes a small file, to the disk.
fn save(path: &Path, text: &str, output: &Path) -> Result<()> {
    let save = || {
        fs::write(path, text)?;
        File::open(path)?.sync_all()
    };
    save().with_context(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        format!("cannot write {name} in {}", output.display())
    })
}
