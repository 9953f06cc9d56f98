"""The examples of test_layers.py with a curved loss, ½ Σ c·y²: all second derivatives are there,
and compilers fuse the loss with the convolution.
"""

import pytest

from . import conv_examples as examples
from .conv_oracles import check


@pytest.mark.parametrize(
    "kind",
    [
        examples.conv1d, examples.conv2d, examples.conv3d, examples.depthwise_conv2d,
        examples.conv1d_transpose, examples.conv2d_transpose, examples.conv3d_transpose,
        examples.conv_general_dilated, examples.conv_general_transpose,
    ],
    ids=lambda kind: kind.__name__,
)  # fmt: skip
def test_convolutions_under_a_curved_loss(backend, kind):
    for i, example in enumerate(kind()):
        check(backend, *example, second=i == 0, compiled=i == 0)
