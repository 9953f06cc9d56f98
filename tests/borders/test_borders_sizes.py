"""torch.compile of our layers with sizes that change from call to call: one or two programs serve
all sizes, as for torch's own layers, and the values are those of eager code.
"""

from math import prod

import numpy as np
import pytest
from frameworks import torch

import isomorph as iso


def weights(*shape):
    return torch.sin(torch.arange(prod(shape), dtype=torch.float64)).reshape(shape)


# Functions of [batch, length, 4]; batch and length change.
LAYERS = {
    "linear": lambda x: iso.linear(x, weights(5, 4), bias=weights(5)),
    "layer_norm": lambda x: iso.layer_norm(x, weight=weights(4)),
    "layer_norm of two axes": lambda x: iso.layer_norm(x, axis=(1, 2)),
    "rms_norm": iso.rms_norm,
    "batch_norm": lambda x: iso.batch_norm(x, weights(4), weights(4) ** 2)[0],
    "group_norm": lambda x: iso.group_norm(x, 2),
    "instance_norm": iso.instance_norm,
    "local_response_norm": lambda x: iso.local_response_norm(x, 3, alpha=0.5),
    "softmax": iso.softmax,
    "gelu": iso.gelu,
    "max_pool": lambda x: iso.max_pool(x, 2),
    "avg_pool": lambda x: iso.avg_pool(x, 3, 1, "SAME"),
    "conv1d": lambda x: iso.conv1d(x, weights(3, 4, 2), 1, "SAME"),
    "conv1d_transpose": lambda x: iso.conv1d_transpose(x, weights(3, 4, 2), 2, "VALID"),
    "attention": lambda x: iso.scaled_dot_product_attention(x, x, x, is_causal=True),
    "grouped": lambda x: iso.grouped_query_attention(x[:, None], x[:, None], x[:, None]),
    "heads": lambda x: iso.multi_head_attention(x, num_heads=2, in_proj_weights=weights(12, 4)),
    "rotary": iso.rotary_embedding,
    "embedding": lambda x: iso.embedding(x[..., 0].long() % 3, weights(3, 2)),
    "cross_entropy": lambda x: iso.cross_entropy(x, x[..., 0].long() % 4),
    "mse": lambda x: iso.mse(x, x * x),
}


@pytest.mark.parametrize("backend", ["torch"], indirect=True)
@pytest.mark.parametrize("name", LAYERS)
def test_sizes_that_change_are_no_matter(backend, name):
    torch._dynamo.reset()
    programs = []

    def counting(graph, inputs):
        programs.append(graph)
        return graph.forward

    program = torch.compile(LAYERS[name], fullgraph=True, backend=counting)
    for batch, length in ((2, 5), (3, 7), (4, 9), (5, 8), (6, 12)):
        x = torch.tensor(np.cos(np.arange(batch * length * 4.0)).reshape(batch, length, 4)) * 3
        torch.testing.assert_close(program(x), LAYERS[name](x))
    assert 1 <= len(programs) <= 3, "compiled again for each size"
