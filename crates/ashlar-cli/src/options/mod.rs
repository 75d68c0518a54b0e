//! `ashlar options`: RocksDB's option names, and how AshlarDB treats each.

use crate::Done;
use crate::bytes_text::counted;
use crate::outcome::Outcome;
use ashlar_base::Error;
use ashlar_env::{EntryKind, Env};
use ashlar_format::filename::FileKind;
use ashlar_options::{
    AnswerKind, Facts, Group, OptionName, explain, lint, markdown, option_names, read_latest_options,
    read_options_file,
};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  ashlar options explain write_buffer_size           what it does, its range, the defaults
  ashlar options explain compression_opts.level      a name inside a struct
  ashlar options list --group=family                 one line per name
  ashlar options list --answer=refused               what is not there, and why
  ashlar options lint DB                             settings that hurt, of a database or an OPTIONS file

Option strings take these names: Db::builder(path).options(\"write_buffer_size=64M;compression=kZSTD\").
Exit status: 0 done, 1 no such name or something to look at, 2 wrong command line.";

/// RocksDB's option names, and how AshlarDB treats each
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct OptionsArguments {
    #[command(subcommand)]
    command: OptionsCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum OptionsCommand {
    /// Explains a name: used, mapped, ignored, unserved or refused, and why
    Explain { name: String },
    /// Lists the names, one per line: group, answer, name, effect
    List {
        /// Lists only the names of one struct of RocksDB
        #[arg(long, value_parser = group_parser())]
        group: Option<Group>,
        /// Lists only the names with one answer
        #[arg(long)]
        answer: Option<AnswerWord>,
    },
    /// Lists harmful settings of an OPTIONS file (AshlarDB's or RocksDB's), why they harm, and what to set instead
    Lint {
        /// An OPTIONS file, or the directory of a database
        #[arg(value_name = "FILE|DIRECTORY")]
        path: PathBuf,
    },
    /// Prints the table as the page docs/options.md
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnswerWord {
    /// An AshlarDB setting means the same
    Used,
    /// A different AshlarDB setting serves the same purpose
    Mapped,
    /// Any valid value is accepted and has no effect
    Ignored,
    /// Accepted without effect, and named in the report of an open
    Unserved,
    /// Only the value that switches the feature off is accepted
    Refused,
}

impl AnswerWord {
    fn kind(self) -> AnswerKind {
        match self {
            AnswerWord::Used => AnswerKind::Used,
            AnswerWord::Mapped => AnswerKind::Mapped,
            AnswerWord::Ignored => AnswerKind::Ignored,
            AnswerWord::Unserved => AnswerKind::Unserved,
            AnswerWord::Refused => AnswerKind::Refused,
        }
    }
}

fn group_parser() -> impl Fn(&str) -> Result<Group, String> + Clone {
    |word| {
        Group::ALL
            .into_iter()
            .find(|group| group.word() == word)
            .ok_or_else(|| format!("the groups are {}", Group::ALL.map(Group::word).join(", ")))
    }
}

/// Runs `ashlar options`.
pub(crate) fn run(arguments: &OptionsArguments) -> Done {
    let mut out = BufWriter::new(io::stdout().lock());
    match &arguments.command {
        OptionsCommand::Explain { name } => write!(out, "{}", explanation(name)?)?,
        OptionsCommand::List { group, answer } => list(*group, answer.map(AnswerWord::kind), &mut out)?,
        OptionsCommand::Lint { path } => lint_path(path, &mut out)?,
        OptionsCommand::Page => out.write_all(markdown().as_bytes())?,
    }
    Ok(out.flush()?)
}

fn lint_path(path: &Path, out: &mut dyn Write) -> Done {
    let env = Env::os()?;
    let fs = &*env.fs;
    let (file, facts) = match fs.metadata(path)? {
        Some(entry) if entry.kind == EntryKind::Dir => {
            let (_, file) = read_latest_options(fs, path)?
                .ok_or_else(|| Error::invalid("there is no OPTIONS file").at_path(path))?;
            let tables = fs.list(path)?.into_iter().filter(|entry| {
                matches!(FileKind::parse(&entry.name), Some(FileKind::Table(_) | FileKind::LevelDbTable(_)))
            });
            let facts = Facts { table_bytes: tables.map(|entry| entry.len).sum(), ..Facts::default() };
            (file, facts)
        }
        _ => (read_options_file(fs, path)?, Facts::default()),
    };
    let findings = lint(&file, &facts);
    findings.iter().try_for_each(|finding| writeln!(out, "{finding}"))?;
    match findings.len() {
        0 => Ok(()),
        count => {
            out.flush()?;
            Err(Outcome::Failed(format!("{} to look at", counted(count as u64, "setting"))))
        }
    }
}

fn explanation(name: &str) -> Result<String, Error> {
    explain(name).map_err(|near| {
        let error = Error::invalid(format!("there is no option {name:?}"));
        match near {
            Some(near) => error.hint(format!("Did you mean {near}?")),
            None => error.hint("`ashlar options list` shows all names"),
        }
    })
}

fn list(group: Option<Group>, answer: Option<AnswerKind>, out: &mut dyn Write) -> Done {
    let fits = |o: &OptionName| group.is_none_or(|g| o.group == g) && answer.is_none_or(|a| o.answer == a);
    for o in option_names().into_iter().filter(fits) {
        writeln!(out, "{:<14} {:<8} {:<44} {}", o.group.word(), o.answer.word(), o.name, o.text)?;
    }
    Ok(())
}
