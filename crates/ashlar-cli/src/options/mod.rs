//! `ashlar options`: RocksDB's option names, and what this engine answers to each.

use crate::Done;
use ashlar_base::Error;
use ashlar_engine::options::{AnswerKind, Group, OptionName, explain, markdown, option_names};
use clap::{Args, Subcommand, ValueEnum};
use std::io::{self, BufWriter, Write};

const EXAMPLES: &str = "\
Examples:
  ashlar options explain write_buffer_size           what it does, its range, the defaults
  ashlar options explain compression_opts.level      a name inside a struct
  ashlar options list --group=family                 one line per name
  ashlar options list --answer=refused               what is not there, and why

Option strings take these names: Db::builder(path).options(\"write_buffer_size=64M;compression=kZSTD\").
Exit status: 0 done, 1 no such name, 2 wrong command line.";

/// RocksDB's option names, and what this engine answers to each
#[derive(Clone, Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub(crate) struct OptionsArguments {
    #[command(subcommand)]
    command: OptionsCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum OptionsCommand {
    /// Says what a name means here: used, mapped, ignored or refused, and why
    Explain { name: String },
    /// Lists the names, one per line: group, answer, name, what it does
    List {
        /// Only the names of one struct of RocksDB's
        #[arg(long, value_parser = group_parser())]
        group: Option<Group>,
        /// Only the names with one answer
        #[arg(long)]
        answer: Option<AnswerWord>,
    },
    /// Prints the table as the page docs/options.md
    Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AnswerWord {
    /// Our setting means the same
    Used,
    /// Something of ours of another shape serves the same end
    Mapped,
    /// Taken with any value, without effect
    Ignored,
    /// Only the value that asks for nothing is taken
    Refused,
}

impl AnswerWord {
    fn kind(self) -> AnswerKind {
        match self {
            AnswerWord::Used => AnswerKind::Used,
            AnswerWord::Mapped => AnswerKind::Mapped,
            AnswerWord::Ignored => AnswerKind::Ignored,
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
        OptionsCommand::Page => out.write_all(markdown().as_bytes())?,
    }
    Ok(out.flush()?)
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
