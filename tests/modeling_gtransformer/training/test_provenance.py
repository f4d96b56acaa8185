"""What results say of their origin."""

from modeling_gtransformer.training.provenance import ROOT, provenance


def test_command_runs_anywhere():
    """A result that is published names no folder of the machine it comes from."""
    assert (
        provenance([f"{ROOT}/benchmarks/loss.py", "--repeats", "1"])["command"]
        == "python benchmarks/loss.py --repeats 1"
    )
    assert provenance(["/elsewhere/script.py"])["command"] == "python /elsewhere/script.py"
