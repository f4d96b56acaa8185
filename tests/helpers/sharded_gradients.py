"""Gradients of a tiny model divided among processes, a script for two of them.

Each process computes the loss of one of the two documents; the first writes the gradients of both to a file.
"""

import sys

import torch
import torch.distributed as dist
from tiny import seeded_model
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


SOURCE = torch.tensor([[0, 5, 6, 2, 0, 7, 2, 0, 9, 10, 11, 2], [0, 8, 6, 2, 1, 1, 1, 1, 1, 1, 1, 1]])
LABELS = torch.tensor([[5, 2, 0, 6, 2, 0, 7, 2, 49], [8, 2, 49] + [-100] * 6])


def loss_of(model, rows):
    """The loss of documents as their share in that of both, in nats per label."""
    source, labels = SOURCE[rows], LABELS[rows]
    items = int((LABELS != -100).sum())
    return model(input_ids=source, attention_mask=source.ne(1).long(), labels=labels, num_items_in_batch=items).loss


def trained_model():
    """A model in training whose gradients are no matter of chance."""
    return seeded_model(dropout=0.0, init_std=0.1).train()


def main(file):
    dist.init_process_group("gloo")
    rank, processes = dist.get_rank(), dist.get_world_size()
    model, mesh = trained_model(), init_device_mesh("cpu", (processes,))
    for layer in (*model.model.encoder.layers, *model.model.decoder.layers):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    # Gradients are averaged over the processes, the losses are shares of one sum.
    (processes * loss_of(model, slice(rank, rank + 1))).backward()
    gradients = {name: parameter.grad.full_tensor() for name, parameter in model.named_parameters()}
    if rank == 0:
        torch.save(gradients, file)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
