#![allow(clippy::unwrap_used)]
use super::*;

const KEEP: Overwrite = Overwrite { force: false };
const FORCE: Overwrite = Overwrite { force: true };

fn error_text<T>(result: Result<T>) -> String {
    format!("{:#}", result.err().unwrap())
}

#[test]
fn a_file_that_is_there_is_refused_unless_it_is_forced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let free = Output::new("--report", &path, KEEP).unwrap();
    fs::write(&path, "a run").unwrap();
    let text = error_text(Output::new("--report", &path, KEEP));
    for part in ["--report", "run.json", "run-{n}.json", "--force"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    // The same for a file that was created in the meantime.
    assert!(free.create().unwrap_err().to_string().contains("--force"));
    assert_eq!(fs::read(&path).unwrap(), b"a run");
    let forced = Output::new("--report", &path, FORCE).unwrap();
    forced.create().unwrap().write_all(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    // A dangling link counts as an existing file.
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("/nowhere", &link).unwrap();
    assert!(Output::new("--report", &link, KEEP).is_err());
}

#[test]
fn what_is_no_file_is_always_written_to() {
    for path in ["/dev/null", "/dev/stdout", "/dev/full", "/proc/self/fd/1"] {
        let output = Output::new("--report", Path::new(path), KEEP).unwrap();
        assert!(output.is_special() && output.may_overwrite(), "{path}");
    }
    let null = Some("/dev/null".into());
    let two = [("--report", &null), ("--record", &null)];
    assert!(name_outputs(&two, None, KEEP).unwrap()[1].is_some());
}

#[test]
fn files_of_a_run_have_one_number_behind_all_that_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let report = Some(path("run-{n}.json"));
    let record = Some(path("r{run}-{n}.h5"));
    let files = [("--report", &report), ("--record", &record)];
    let names = || {
        let outputs = name_outputs(&files, Some(7), KEEP).unwrap();
        outputs.map(|output| {
            let path = output.unwrap().path;
            path.file_name().unwrap().to_str().unwrap().to_owned()
        })
    };
    assert_eq!(names(), ["run-0001.json", "r0007-0001.h5"]);
    for (there, next) in [
        ("run-0001.json", "run-0002.json"),
        // A number that is missing in between is not used again.
        ("r0007-0004.h5", "run-0005.json"),
        // A recording of several files whose run was killed.
        ("r0007-0006_00002.h5", "run-0007.json"),
        // An incomplete report.
        (".run-0007.json.Xy12ab.tmp", "run-0008.json"),
        ("run-12000.json", "run-12001.json"),
        // Files of other programs.
        ("run-99999x.json", "run-12001.json"),
        ("ran-99999.json", "run-12001.json"),
        ("run-.json", "run-12001.json"),
    ] {
        fs::write(path(there), "").unwrap();
        assert_eq!(names()[0], next, "after {there}");
    }
    fs::write(path("run-4294967295.json"), "").unwrap();
    assert!(error_text(name_outputs(&files, Some(7), KEEP)).contains("no number is left"));
}

#[test]
fn names_that_cannot_be_are_explained() {
    let of = |name: &str| error_text(Output::new("--record", Path::new(name), KEEP));
    assert!(of("r-{run}.h5").contains("give --run"));
    assert!(of("r-{burst}.h5").contains("give --run"));
    assert!(of("pcap:rx=run.pcapng").contains("is a port, not a file"));
    assert!(Output::new("--record", Path::new("./pcap:rx=run.h5"), KEEP).is_ok());
    let of_run = |name: &str| {
        let outputs = name_outputs(&[("--record", &Some(name.into()))], Some(2), KEEP);
        error_text(outputs)
    };
    assert!(of_run("{burst}/r.h5").contains("not in that of its folder"));
    assert!(of_run("{burst}-{burst}.h5").contains("twice"));
    assert!(of_run("{burst}-{n}.h5").contains("in front of {burst}"));
    assert!(of("{n}/r.h5").contains("not in that of its folder"));
    assert!(of("{n}-{n}.h5").contains("twice"));
    let run = Some("no-run".into());
    let same = [("--record", &run), ("--report", &run)];
    assert!(error_text(name_outputs(&same, None, KEEP)).contains("--record no-run and --report"));
    let [run] = name_outputs(&[("--record", &Some("{run}/x".into()))], Some(2), KEEP).unwrap();
    assert_eq!(run.unwrap().path(), Path::new("0002/x"));
}

#[test]
fn bursts_have_files_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = Some(folder.path().join("r{run}-{n}-{burst}.h5"));
    let of = |run| {
        let [output] = name_outputs(&[("--record", &path)], Some(run), KEEP).unwrap();
        output.unwrap()
    };
    let name = |output: &Output| {
        let name = output.path().file_name().unwrap();
        name.to_str().unwrap().to_owned()
    };
    let first = of(7);
    assert!(first.is_by_burst() && !first.of_burst(1).is_by_burst());
    assert_eq!(name(&first.of_burst(12)), "r0007-0001-00012.h5");
    assert_eq!(
        name(&first.of_burst(12).part(3)),
        "r0007-0001-00012_00003.h5"
    );
    fs::write(first.of_burst(3).path(), "a burst").unwrap();
    assert_eq!(name(&of(7).of_burst(1)), "r0007-0002-00001.h5");
    // The first of them is searched for at once.
    let path = Some(folder.path().join("x-{burst}.h5"));
    fs::write(folder.path().join("x-00001.h5"), "a burst").unwrap();
    let text = error_text(name_outputs(&[("--record", &path)], Some(1), KEEP));
    assert!(
        text.contains("x-00001.h5") && text.contains("--force"),
        "{text}"
    );
    assert!(text.contains("x-{n}-{burst}.h5"), "{text}");
}

/// A ring may have removed the first part.
#[test]
fn no_part_of_an_earlier_run_is_left_among_those_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let there = |name: &str| folder.path().join(name).exists();
    for (name, divided, earlier) in [
        ("run.h5", true, "run_00011.h5"),
        ("r-{burst}.h5", false, "r-00003.h5"),
        ("q-{burst}.h5", true, "q-00003_00002.h5"),
    ] {
        let path = Some(folder.path().join(name));
        for other in ["run_a.h5", "run_1.h5x", "r-.h5", "q-3.h5x", "run.txt"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        let named = |force| {
            let [output] = name_outputs(&[("--record", &path)], Some(1), Overwrite { force })?;
            let output = output.unwrap();
            if divided {
                output.expect_free_parts()?;
            }
            output.clear(divided).map(|()| output)
        };
        named(false).unwrap();
        fs::write(folder.path().join(earlier), "an earlier run").unwrap();
        let text = error_text(named(false));
        assert!(text.contains(earlier) && there(earlier), "{text}");
        named(true).unwrap();
        assert!(!there(earlier), "{earlier}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5);
    }
}

#[test]
fn parts_are_numbered() {
    let of = |path: &str| part(Path::new(path), 7).display().to_string();
    assert_eq!(of("/data/run.pcapng"), "/data/run_00007.pcapng");
    assert_eq!(of("run"), "run_00007");
    assert_eq!(of("run.1.pcapng"), "run.1_00007.pcapng");
}
