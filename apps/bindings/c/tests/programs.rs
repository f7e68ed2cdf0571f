//! Programs in C and C++ that use the library: what they print, and that valgrind finds nothing lost.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pollux_pmd_testkit::frames::Frame;

/// The folder of the libraries that cargo has built for this test.
fn libraries() -> PathBuf {
    // A reference to the crate has cargo build it, and with it the shared library.
    assert!(pollux::pollux_ended as *const () as usize != 0);
    std::env::current_exe()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned()
}

/// A folder with the library under the name that programs load.
fn installed(folder: &Path) {
    let library = libraries().join("libpollux.so");
    for name in ["libpollux.so", "libpollux.so.0"] {
        symlink(&library, folder.join(name)).unwrap();
    }
}

/// Compiles a program of `tests/c`, or of an absolute path; `None` without a compiler.
fn compile(folder: &Path, source: &str) -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let source_path = here.join("tests/c").join(source);
    let (compiler, standard) = if source_path.extension().is_some_and(|end| end == "cc") {
        ("c++", "-std=c++17")
    } else {
        ("cc", "-std=gnu11")
    };
    let program = folder.join(source_path.file_stem().unwrap());
    let mut command = Command::new(compiler);
    command
        .args([
            standard,
            "-g",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-o",
        ])
        .arg(&program)
        .arg("-I")
        .arg(here.join("include"))
        .arg(&source_path);
    // Not the static library: with the feature `dpdk`, which it has in tests, it needs DPDK's too. The
    // step `capi` of scripts/test links it.
    command.arg("-L").arg(folder).arg("-lpollux");
    command.arg(format!("-Wl,-rpath,{}", folder.display()));
    let Ok(output) = command.arg("-pthread").output() else {
        println!("skipped: no {compiler}: apt-get install gcc g++");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(program)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a program under valgrind, if there is one: memory that is lost or misused is a failure.
fn run(program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new("valgrind");
    command
        .args(["--quiet", "--leak-check=full", "--error-exitcode=99"])
        .arg("--errors-for-leak-kinds=definite,indirect,possible");
    command.arg("--show-leak-kinds=definite,indirect,possible");
    let output = command.arg(program).args(args).output();
    let output = output.unwrap_or_else(|_| {
        println!("skipped: no valgrind: apt-get install valgrind");
        Command::new(program).args(args).output().unwrap()
    });
    let said = text(&output.stderr);
    assert!(
        output.status.success(),
        "{}: {}: {said}",
        program.display(),
        output.status
    );
    output
}

#[test]
fn misuse_is_refused_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path());
    if let Some(program) = compile(folder.path(), "misuse.c") {
        run(&program, &[]);
    }
}

#[test]
fn frames_go_round_in_cpp() {
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path());
    if let Some(program) = compile(folder.path(), "forward.cc") {
        run(&program, &[]);
    }
}

#[test]
fn the_program_of_the_manual_counts() {
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path());
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/c.md");
    let manual = std::fs::read_to_string(manual).unwrap();
    let (_, program) = manual.split_once("```c\n").unwrap();
    let source = folder.path().join("listen.c");
    std::fs::write(&source, program.split_once("```").unwrap().0).unwrap();
    let Some(program) = compile(folder.path(), source.to_str().unwrap()) else {
        return;
    };
    // A classic capture of three datagrams to port 2000, which is none of the program's.
    let mut capture: Vec<u8> = [0xa1b2_c3d4, 2 | 4 << 16, 0, 0, 0x4_0000, 1_u32]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let frame = Frame::udp(&[1; 30]).bytes();
    for _ in 0..3 {
        let len = frame.len() as u32;
        capture.extend(
            [0, 0, len, len]
                .iter()
                .flat_map(|word: &u32| word.to_le_bytes()),
        );
        capture.extend(&frame);
    }
    let file = folder.path().join("a.pcap");
    std::fs::write(&file, capture).unwrap();
    let said = text(&run(&program, &[&format!("pcap:rx={}", file.display())]).stdout);
    assert!(said.starts_with("0 B of payload\n"), "{said}");
    assert!(
        said.contains(r#""from_wire":3,"delivered":0,"dropped":{"demux-miss":3},"balanced":true"#),
        "{said}"
    );
}

/// The header is C11 and C++17 without the extensions of a compiler.
#[test]
fn the_header_is_standard() {
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/pollux.h");
    for words in [["cc", "-xc", "-std=c11"], ["c++", "-xc++", "-std=c++17"]] {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).args([
            "-fsyntax-only",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ]);
        // A header alone would be a main file with a guard.
        command.args(["-include"]).arg(&header).arg("/dev/null");
        match command.output() {
            Ok(output) => assert!(output.status.success(), "{}", text(&output.stderr)),
            Err(_) => println!("skipped: no {}: apt-get install gcc g++", words[0]),
        }
    }
}

/// Datagrams by UDP port, as tshark finds them: those in fragments when they are whole, or never.
fn tshark(path: &Path, defragment: bool) -> Option<(BTreeMap<u16, u64>, usize)> {
    let mut command = Command::new("tshark");
    command.args([
        "-o",
        if defragment {
            "ip.defragment:TRUE"
        } else {
            "ip.defragment:FALSE"
        },
    ]);
    command.args(["-T", "fields", "-r"]).arg(path);
    for field in ["udp.dstport", "ip.flags.mf", "ip.frag_offset"] {
        command.args(["-e", field]);
    }
    let output = command.output().ok()?;
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (said, mut counts) = (text(&output.stdout), BTreeMap::new());
    for line in said.lines() {
        let fields: Vec<_> = line.split('\t').collect();
        let fragment = matches!(fields[1], "1" | "True") || !matches!(fields[2], "0" | "");
        if let Ok(port) = fields[0].parse()
            && (defragment || !fragment)
        {
            *counts.entry(port).or_default() += 1;
        }
    }
    Some((counts, said.lines().count()))
}

#[test]
fn counts_equal_those_of_tshark() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let data = std::env::var_os("POLLUX_DATA");
    let data = data.map_or_else(|| here.join("../../../../shared/data"), PathBuf::from);
    let Ok(captures) = std::fs::read_dir(data.join("pcap")) else {
        println!("skipped: no recorded data at {}", data.display());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    installed(folder.path());
    let Some(program) = compile(folder.path(), "counts.c") else {
        return;
    };
    let captures = captures.map(|entry| entry.unwrap().path());
    for path in captures.filter(|path| path.extension().is_some_and(|end| end == "pcap")) {
        for defragment in [false, true] {
            let Some((expected, frames)) = tshark(&path, defragment) else {
                println!("skipped: no tshark: apt-get install tshark");
                return;
            };
            let spec = format!("pcap:rx={}", path.display());
            let args = [spec.as_str(), "drop"];
            let args = &args[..2 - usize::from(defragment)];
            // Under valgrind those alone that have fragments: each takes seconds.
            let output = if path.ends_with("same_ports.pcap") {
                run(&program, args)
            } else {
                Command::new(&program).args(args).output().unwrap()
            };
            let said = text(&output.stdout);
            let (ledger, counts) = said.lines().collect::<Vec<_>>().split_last().map_or_else(
                || (String::new(), BTreeMap::new()),
                |(ledger, counts)| {
                    let pair = |line: &&str| {
                        let (port, count) = line.split_once(' ').unwrap();
                        (port.parse().unwrap(), count.parse().unwrap())
                    };
                    ((*ledger).to_owned(), counts.iter().map(pair).collect())
                },
            );
            assert_eq!(counts, expected, "{}", path.display());
            let ledger: serde_json::Value = serde_json::from_str(&ledger).unwrap();
            assert_eq!(ledger["from_wire"], frames, "{}", path.display());
            assert_eq!(
                (&ledger["balanced"], &ledger["held"]),
                (&true.into(), &0.into())
            );
        }
    }
}
