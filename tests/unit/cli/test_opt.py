"""``shardy-opt``: flags, parts, errors, exit codes."""

import io
import subprocess
import sys

import pytest

pytest.importorskip("jaxlib", reason="the command reads MLIR modules")

from shardy_py.cli.opt import main
from shardy_py.cli.opt_passes import parse_arguments
from shardy_py.errors import OptionError
from shardy_py.transforms.propagate import AggressivePropagationPass, BasicPropagationPass

SHARDED = """\
sdy.mesh @m = <["x"=2]>
func.func @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
UNKNOWN_AXIS = SHARDED.replace('[{"x"}]', '[{"z"}]')


@pytest.fixture
def opt(tmp_path, monkeypatch, capsys):
    """Runs the command on a file in.mlir with the given text; returns the exit code and both outputs."""
    monkeypatch.chdir(tmp_path)

    def run(text, *arguments):
        (tmp_path / "in.mlir").write_text(text)
        code = main([*arguments, "in.mlir"])
        return code, *capsys.readouterr()

    return run


def test_passes_run_in_the_order_of_their_flags():
    """One dash or two, with options or without, before the file or after it."""
    command = parse_arguments(
        ["-sdy-basic-propagate", "f.mlir", "--sdy-aggressive-propagate=propagation-strategy=aggressive"]
    )
    assert command.passes == (BasicPropagationPass(), AggressivePropagationPass(propagation_strategy="aggressive"))
    assert command.file == "f.mlir"


def test_options_of_a_flag_may_be_several():
    """They come as one argument after the equals sign."""
    (item,) = parse_arguments(["-sdy-basic-propagate=keep-sharding-rules=true conservative-propagation=true"]).passes
    assert item == BasicPropagationPass(keep_sharding_rules=True, conservative_propagation=True)


def test_a_pipeline_stands_for_flags():
    """With its value after an equals sign or a space."""
    for arguments in (
        ["--pass-pipeline=builtin.module(sdy-basic-propagate)"],
        ["--pass-pipeline", "sdy-basic-propagate"],
    ):
        assert parse_arguments(arguments).passes == (BasicPropagationPass(),)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-sdy-basic-propagte"], "did you mean sdy-basic-propagate"),
        (["--nonsense"], "unknown flag"),
        (["-split-input-file=1"], "unknown flag"),
        (["-o"], "needs a value"),
        (["a", "b"], "one file is expected, 2 are given"),
        (["--pass-pipeline=canonicalize", "-canonicalize"], "does not go together"),
    ],
)
def test_wrong_command_lines_are_errors(arguments, message):
    """Each says what is wrong."""
    with pytest.raises(OptionError, match=message):
        parse_arguments(arguments)


def test_a_wrong_command_line_exits_with_2(capsys):
    """Its message goes to standard error."""
    assert main(["-sdy-basic-propagate=what=1"]) == 2
    assert "error: sdy-basic-propagate has no option 'what'" in capsys.readouterr().err


def test_a_module_is_printed_after_the_passes(opt):
    """Without passes it is only parsed and printed."""
    code, out, err = opt(SHARDED, "-sdy-basic-propagate")
    assert (code, err) == (0, "")
    assert 'stablehlo.add %arg0, %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"x", ?}]>]>}' in out
    assert "sdy.sharding_per_value" not in opt(SHARDED)[1]
    assert '"func.return"' in opt(SHARDED, "--mlir-print-op-generic")[1]


def test_parts_are_transformed_one_by_one(opt):
    """A part with an error does not keep the others from being printed; places count from the start of the file."""
    code, out, err = opt(
        f"{SHARDED}// -----\n{UNKNOWN_AXIS}// -----\n{SHARDED}", "-split-input-file", "-sdy-basic-propagate"
    )
    assert code == 1
    assert out.count("stablehlo.add") == 2
    assert out.count("// -----\n") == 1
    assert err == "in.mlir:8:1: error: 'func.func' op arg 0 - unknown axis name: \"z\"\n"


def test_errors_of_passes_name_the_file_and_the_op(opt):
    """They look like MLIR's own."""
    code, out, err = opt(
        SHARDED.replace("tensor<4xf32>", "tensor<?xf32>").replace('{"x"}', "{}"), "-sdy-basic-propagate"
    )
    assert (code, out) == (1, "")
    assert err.startswith("in.mlir:")
    assert "tensor<?xf32>" in err


def test_nothing_is_written_where_a_part_fails(opt, tmp_path):
    """The output file appears only with a complete result."""
    assert opt(UNKNOWN_AXIS, "-o", "out.mlir")[0] == 1
    assert not (tmp_path / "out.mlir").exists()
    assert opt(SHARDED, "-o", "out.mlir")[:2] == (0, "")
    assert "stablehlo.add" in (tmp_path / "out.mlir").read_text()


def test_standard_input_is_read_by_default(monkeypatch, capsys):
    """A dash means the same."""
    for arguments in ([], ["-"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SHARDED.encode())))
        assert main(arguments) == 0
        assert "stablehlo.add" in capsys.readouterr().out


@pytest.mark.parametrize(("file", "reason"), [("no.mlir", "No such file"), (".", "Is a directory")])
def test_unreadable_files_exit_with_2(file, reason, capsys):
    """The message names the file and the reason."""
    assert main([file]) == 2
    assert f"cannot read {file}: {reason}" in capsys.readouterr().err


def test_flags_for_test_files_are_accepted(opt):
    """Upstream's RUN lines work as they are."""
    assert opt(SHARDED, "-verify-diagnostics", "-allow-unregistered-dialect", "--")[0] == 0


def test_help_lists_the_passes(capsys):
    """And says what exit codes mean."""
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "sdy-user-priority-propagate" in out
    assert "Exit code" in out


def test_the_command_runs_as_a_process(tmp_path):
    """The module is a program of its own, and no input gives a traceback."""
    command = [sys.executable, "-m", "shardy_py.cli.opt", "-sdy-basic-propagate"]
    done = subprocess.run(command, input=SHARDED, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert "sdy.sharding_per_value" in done.stdout
    done = subprocess.run(command, input="func.func @f(", capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("<stdin>:1:")
    assert "Traceback" not in done.stderr


def test_a_reduced_sharding_is_a_warning(opt):
    """Where the pass runs that reduces it, with the option that leaves it out."""
    text = SHARDED.replace("4xf32", "5xf32")
    for flag in ("-sdy-propagation-pipeline", "-sdy-update-non-divisible-input-output-shardings"):
        code, out, err = opt(text, flag)
        assert code == 0
        assert '[{"x"}]>}) ->' not in out
        assert "in.mlir:2:1: warning: 'func.func' op the sharding [{\"x\"}] given for argument arg0" in err
        assert "update-non-divisible-input-output-shardings=false" in err
    flag = "-sdy-propagation-pipeline=update-non-divisible-input-output-shardings=false"
    code, out, err = opt(text, flag)
    assert (code, err) == (0, "")
    assert '#sdy.sharding<@m, [{"x"}]>}) ->' in out
    assert opt(text, "-sdy-basic-propagate")[2] == ""


def test_an_option_without_effect_is_a_warning(opt, tmp_path):
    """Snapshots are written after user priorities only."""
    code, _, err = opt(SHARDED, f"-sdy-basic-propagate=module-dump-directory={tmp_path / 'dumps'}")
    assert code == 0
    assert "warning: the option module-dump-directory has no effect on sdy-basic-propagate" in err
    assert not (tmp_path / "dumps").exists()
