//! One set of files made of another: the whole checkpoint or shards of it, of shards or the whole.

use crate::args::Writing;
use crate::checkpoint::Checkpoint;
use crate::failure::{failure, refuse, Kind};
use crate::plan::{place, Cut, Placed};
use crate::progress::Progress;
use crate::report::{bytes_text, many, print, print_json, warn};
use crate::shards::{lay_out, rank_name, with_total, Manifest, Shards, VERSION};
use crate::staging::{check_directory, check_names, create, Staging, MANIFEST};
use crate::transfer::{End, Mover, Side, Whole};
use anyhow::{Context, Result};
use libsplit_formats::safetensors::{Header, Tensor};
use serde_json::{json, Value};
use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// What is to be made of shards.
pub struct Job<'a> {
    pub command: &'static str,
    /// For so many ranks, or one whole.
    pub tp: Option<usize>,
    pub output: Option<&'a Path>,
    /// Whether the plan is the user's, and not that of the shards, of which has been told before.
    pub is_new_plan: bool,
    pub strict: bool,
    pub chunk: u64,
    pub writing: &'a Writing,
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
    pub fn run(&self, shards: &Shards) -> Result<()> {
        // By the plan alone, also where nothing is cut: what matches nothing is told either way.
        let placed = place(&shards.plan, &shards.whole, self.tp.unwrap_or(1))?;
        self.warn(&placed)?;
        let warnings = placed.warnings.clone();
        let placed = if self.tp.is_some() { placed } else { Placed::default() };
        let made = self.layout(shards, &placed)?;
        let bytes = match (self.output, self.tp) {
            (Some(output), Some(tp)) => self.write_ranks(shards, &placed, &made, output, tp)?,
            (Some(output), None) => self.write_whole(shards, &placed, made, output)?,
            (None, _) => (0, 0), // a dry run
        };
        Told { job: self, shards, placed: &placed, warnings: &warnings, bytes }.tell()
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
}

/// What the user is told.
struct Told<'a> {
    job: &'a Job<'a>,
    shards: &'a Shards,
    placed: &'a Placed,
    warnings: &'a [String],
    /// Bytes of tensors that were read and written.
    bytes: (u64, u64),
}

impl Told<'_> {
    fn tell(&self) -> Result<()> {
        match self.job.writing {
            Writing { json: true, .. } => print_json(&self.json()),
            Writing { quiet: true, .. } => Ok(()),
            Writing { dry_run: true, .. } => print(&self.table()),
            _ => print(&self.line()),
        }
    }

    /// Each tensor of the whole, its shape, the pattern that matched it, and its new cut.
    fn tensors(&self) -> impl Iterator<Item = (&Tensor, &[u64], Option<&str>, Option<&Cut>)> {
        self.shards.ranks[0].tensors().map(|tensor| {
            let (name, plan) = (&tensor.name, &self.shards.plan);
            let pattern = plan.entry(name).map(|entry| plan.entries[entry].pattern.as_str());
            (tensor, self.shards.whole[name].as_slice(), pattern, cut_of(self.placed, name))
        })
    }

    fn json(&self) -> Value {
        let tensors = self.tensors().map(|(tensor, shape, pattern, cut)| {
            json!({
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": shape,
                "pattern": pattern,
                "axis": cut.map(|cut| cut.axis),
                "rank_shape": cut.map_or(shape.to_vec(), |cut| cut.shape_of(0, shape)),
            })
        });
        json!({
            "command": self.job.command,
            "output": self.job.output,
            "dry_run": self.job.writing.dry_run,
            "tp": self.job.tp,
            "tp_before": self.shards.ranks.len(),
            "tensors": tensors.collect::<Vec<Value>>(),
            "warnings": self.warnings,
            "bytes_read": self.bytes.0,
            "bytes_written": self.bytes.1,
        })
    }

    fn table(&self) -> String {
        let line =
            |(tensor, shape, pattern, cut): (&Tensor, &[u64], Option<&str>, Option<&Cut>)| {
                let (name, dtype) = (&tensor.name, tensor.dtype.name);
                let what = cut.map_or("whole".into(), |cut| {
                    let (axis, here) = (cut.axis, cut.shape_of(0, shape));
                    format!(
                        "cut on axis {axis}, {here:?} a rank, by {:?}",
                        pattern.unwrap_or_default()
                    )
                });
                format!("{name}  {dtype} {shape:?}  {what}\n")
            };
        self.tensors().map(line).collect()
    }

    fn line(&self) -> String {
        let ranks = |count| many(count, "rank");
        let tensors = many(self.shards.whole.len(), "tensor");
        let from = match self.job.command {
            "shard" => String::new(),
            _ => format!(" of {}", ranks(self.shards.ranks.len())),
        };
        let to = self.job.tp.map_or("the whole".into(), ranks);
        let output = self.job.output.unwrap_or(Path::new(".")).display();
        let (read, written) = (bytes_text(self.bytes.0), bytes_text(self.bytes.1));
        format!("{tensors}{from} to {to} in {output}: {read} read, {written} written\n")
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
