"""LoRA for the rollout engines: the adapter's product added to the weights that it adapts, under their names.

OpenRLHF 0.11.2 sends an adapted policy's parameters as they are called inside PEFT, which no engine knows
(OpenRLHF issue 1349), and saves the adapter alone. Here each weight is added up when it is sent or saved,
into a new tensor: merging in place and taking apart again would round the frozen weights in bfloat16 at every
step.

The reference is the policy without its adapters (`UnadaptedPolicy`), so no second model is loaded.
"""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch

_PEFT_PREFIX = "base_model.model."
_BASE = ".base_layer"
_ADAPTER = "lora_"


class MergedWeight:
    """What the weight sync reads of a parameter, for a weight with its adapter; added up at each reading."""

    requires_grad = True

    def __init__(self, layer: Any) -> None:
        self._layer = layer
        self.dtype: torch.dtype = layer.base_layer.weight.dtype
        self.shape: torch.Size = layer.base_layer.weight.shape

    @property
    def data(self) -> torch.Tensor:
        """(outputs, inputs) the weight that the adapted layer computes with."""
        with torch.no_grad():
            weight: torch.Tensor = self._layer.base_layer.weight.float()
            for name in self._layer.active_adapters:
                weight = weight + self._layer.get_delta_weight(name).float()
            return weight.to(self.dtype)


def _merged_parameters(model: Any) -> Iterator[tuple[str, Any]]:
    """Those of an adapted model without its adapters, under its names, with the adapters' part in them."""
    for name, parameter in model.named_parameters():
        if f".{_ADAPTER}" in name:
            continue
        plain = name.removeprefix(_PEFT_PREFIX)
        if f"{_BASE}.weight" in plain:
            layer = model.get_submodule(name.removesuffix(f"{_BASE}.weight"))
            yield plain.replace(_BASE, ""), MergedWeight(layer)
        else:
            yield plain.replace(_BASE, ""), parameter


class UnadaptedPolicy:
    """The policy's ranks as the reference, with the calls that OpenRLHF's experience maker makes of one."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy  # OpenRLHF's `RayActorGroup` of `pipeline.training.policy.MarchPolicyActor`

    def async_run_method_batch(self, method_name: str, **rows: Any) -> list[Any]:
        assert method_name == "forward"
        refs: list[Any] = self._policy.async_run_method_batch(method_name="forward_unadapted", **rows)
        return refs

    def async_run_method(self, method_name: str) -> list[Any]:
        refs: list[Any] = self._policy.async_run_method(method_name=method_name)
        return refs


def merged_actor(actor: Any) -> Any:
    """What the weight sync takes for the actor: `.model.module` with its parameters."""
    module = SimpleNamespace(named_parameters=partial(_merged_parameters, actor.model.module))
    return SimpleNamespace(model=SimpleNamespace(module=module))


def save_merged(actor: Any, tokenizer: Any, folder: str) -> None:
    """Saves what the engines are sent as a model that needs no PEFT to load; training may go on."""
    adapted = actor.model.module
    weights = {name: weight.data.cpu() for name, weight in _merged_parameters(adapted)}
    adapted.get_base_model().save_pretrained(folder, state_dict=weights)
    tokenizer.save_pretrained(folder)
