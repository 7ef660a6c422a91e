//! Builds the eBPF object with the pinned tools, checks that no panic was linked, strips the debug
//! sections (BTF stays) and puts it, with the versions of the tools, where the exporter embeds it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// The object that the exporter embeds.
const OBJECT: &str = "exporter/bpf/exporter-ebpf.o";
/// What it was built with.
const TOOLS: &str = "exporter/bpf/tools.txt";
/// Where LLVM of the pinned bpf-linker lives unless `LLVM_PREFIX` says otherwise.
const LLVM_PREFIX: &str = "/usr/lib/llvm-22";

/// `cargo xtask build-ebpf`
pub(crate) fn build(root: &Path) -> Result<()> {
    let object = compile(root)?;
    fs::write(root.join(OBJECT), object).with_context(|| format!("writing {OBJECT}"))?;
    fs::write(root.join(TOOLS), tools()?).with_context(|| format!("writing {TOOLS}"))?;
    println!("wrote {OBJECT} and {TOOLS}");
    Ok(())
}

/// `cargo xtask check-ebpf`: the checked-in object is what the sources give.
pub(crate) fn check(root: &Path) -> Result<()> {
    let recorded = fs::read_to_string(root.join(TOOLS)).with_context(|| format!("reading {TOOLS}"))?;
    let present = tools()?;
    let committed = fs::read(root.join(OBJECT)).with_context(|| format!("reading {OBJECT}"))?;
    let built = compile(root)?;
    if recorded != present {
        let (a, b) = (disassemble(&committed)?, disassemble(&built)?);
        println!("tools differ, comparing the disassembly\nrecorded:\n{recorded}present:\n{present}");
        if a != b {
            bail!("the disassembly of {OBJECT} is not what the sources give: run `cargo xtask build-ebpf`");
        }
    } else if committed != built {
        bail!("{OBJECT} is not what the sources give: run `cargo xtask build-ebpf` and commit the result");
    }
    println!("{OBJECT} is what the sources give");
    Ok(())
}

fn compile(root: &Path) -> Result<Vec<u8>> {
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
    let home = env::var("HOME").context("HOME is not set")?;
    let cargo_home = env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo"));
    let flags = [
        format!("--remap-path-prefix={}=/s", root.display()),
        format!("--remap-path-prefix={}=/r", sysroot.trim()),
        format!("--remap-path-prefix={cargo_home}=/c"),
        "-Clinker=bpf-linker".to_owned(),
        "-Clink-arg=--btf".to_owned(),
        "-Cdebuginfo=2".to_owned(),
    ];
    let status = Command::new("cargo")
        .args(["build", "--release", "--locked", "--bin", "exporter-ebpf", "-Zbuild-std=core"])
        .args(["--target", "bpfel-unknown-none"])
        .current_dir(root.join("exporter-ebpf"))
        .env("RUSTC_BOOTSTRAP", "1")
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .context("starting cargo")?;
    if !status.success() {
        bail!("building exporter-ebpf failed; CONTRIBUTING.md says which tools it needs");
    }
    let built = root.join("exporter-ebpf/target/bpfel-unknown-none/release/exporter-ebpf");
    let symbols = output(llvm("llvm-readelf").arg("-sW").arg(&built))?;
    if let Some(line) = symbols.lines().find(|l| l.contains("panicking") || l.contains("unwrap_failed")) {
        bail!("the object holds a panic, which no kernel takes: {}", line.trim());
    }
    let stripped = built.with_extension("stripped");
    output(llvm("llvm-objcopy").arg("--strip-debug").arg(&built).arg(&stripped))?;
    fs::read(&stripped).context("reading the stripped object")
}

fn tools() -> Result<String> {
    let rustc = output(Command::new("rustc").arg("--version"))?;
    let linker = output(Command::new("bpf-linker").arg("--version"))?;
    let llvm = output(llvm("llvm-config").arg("--version"))?;
    Ok(format!("{}\n{}\nLLVM {}\n", rustc.trim(), linker.trim(), llvm.trim()))
}

fn disassemble(object: &[u8]) -> Result<String> {
    let path = env::temp_dir().join(format!("exporter-ebpf-{}.o", std::process::id()));
    fs::write(&path, object)?;
    let text = output(llvm("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(&path));
    fs::remove_file(&path)?;
    Ok(text?.lines().skip(2).collect::<Vec<_>>().join("\n"))
}

fn llvm(tool: &str) -> Command {
    let prefix = env::var("LLVM_PREFIX").unwrap_or_else(|_| LLVM_PREFIX.to_owned());
    Command::new(PathBuf::from(prefix).join("bin").join(tool))
}

fn output(command: &mut Command) -> Result<String> {
    let run = command.output().with_context(|| format!("starting {:?}", command.get_program()))?;
    if !run.status.success() {
        bail!("{:?} failed: {}", command.get_program(), String::from_utf8_lossy(&run.stderr));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}
