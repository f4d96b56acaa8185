"""Parameters that are divided among processes (FSDP2) get the gradients of a model that is whole."""

import pytest
import torch
import torch.distributed as dist
from repository import ROOT
from sharded_gradients import loss_of, trained_model
from two_processes import run_on_two_processes


@pytest.mark.skipif(not (dist.is_available() and dist.is_gloo_available()), reason="this torch has no gloo")
def test_two_processes_have_the_gradients_of_one(tmp_path):
    run_on_two_processes(ROOT / "tests" / "helpers" / "sharded_gradients.py", tmp_path / "gradients.pt")
    model = trained_model()
    loss_of(model, slice(2)).backward()
    expected = {name: parameter.grad for name, parameter in model.named_parameters()}
    torch.testing.assert_close(torch.load(tmp_path / "gradients.pt"), expected, rtol=1e-4, atol=1e-6)
