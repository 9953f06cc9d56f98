"""Convolution in JAX: XLA has all of it, in every layout."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...layers.conv_plan import Plan

AXES = {1: "W", 2: "HW", 3: "DHW"}


def conv(x: Any, w: Any, bias: Any, plan: Plan) -> Any:
    axes = AXES[len(plan.size)]
    form = f"NC{axes}" if plan.first else f"N{axes}C"
    filters = f"OI{axes}" if plan.filters_first else f"{axes}IO"
    y = jax.lax.conv_general_dilated(
        x,
        w,
        plan.strides,
        plan.pads,
        plan.x_dilations,
        plan.dilations,
        (form, filters, form),
        plan.groups,
    )
    if bias is None:
        return y
    return y + (jnp.reshape(bias, (-1, *(1,) * len(axes))) if plan.first else bias)
