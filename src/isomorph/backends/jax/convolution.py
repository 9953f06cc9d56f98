"""Convolution in JAX: XLA has all of it, in every layout."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...meanings.conv_plan import Plan

AXES = {1: "W", 2: "HW", 3: "DHW"}


def conv(x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    axes, x_dilations = AXES[len(plan.size)], plan.x_dilations
    if plan.groups > 1 and max(x_dilations) > 1:
        # cuDNN refuses some gradients of the two together (CUDNN_STATUS_BAD_PARAM, jax 0.11)
        x, x_dilations = _dilated(x, plan), (1,) * len(axes)
    form = f"NC{axes}" if plan.first else f"N{axes}C"
    filters = f"OI{axes}" if plan.filters_first else f"{axes}IO"
    y = jax.lax.conv_general_dilated(
        x,
        w,
        plan.strides,
        plan.pads,
        x_dilations,
        plan.dilations,
        (form, filters, form),
        plan.groups,
    )
    if bias is None:
        return y
    return y + (jnp.reshape(bias, (-1, *(1,) * len(axes))) if plan.first else bias)


def _dilated(x: Any, plan: Plan) -> Any:
    """`x` with zeros between its elements."""
    inner = [(0, 0, d - 1) for d in plan.x_dilations]
    none = (0, 0, 0)
    places = [none, none, *inner] if plan.first else [none, *inner, none]
    return jax.lax.pad(x, jnp.zeros((), x.dtype), places)
