"""What the platform layer changes in OpenRLHF, DeepSpeed, vLLM and torch where there is no CUDA.

The few calls that name a CUDA device are replaced, the two C++ extensions that DeepSpeed would compile
(minutes on a new machine, and a compiler to install), and imports are left out that no training uses and that
cost each of its processes two seconds of a core.

Each patch is a row of `PATCHES_BEFORE` or `PATCHES_AFTER`; `tests/test_cpu_layer.py` shows for each that it
is still needed and that the module it names still exists, so an upgrade of OpenRLHF or vLLM cannot break one
silently.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import sys
import types
from collections.abc import Callable
from typing import Any

DTYPE_VARIABLE = "MARCH_CPU_DTYPE"  # `pipeline.cpu.speed.CpuDtype` of a training's matrix products

_FLASH_ATTN_MODULES = (
    "flash_attn",
    "flash_attn.bert_padding",
    "flash_attn.utils",
    "flash_attn.utils.distributed",
)


class CpuDevice(str):
    """What `torch.cuda.current_device()` returns here: a device argument ("cpu") that formats as a digit.

    OpenRLHF's replay buffer parses `torch.device(f"cuda:{current_device()}")`, which must not raise.
    """

    def __format__(self, spec: str) -> str:
        return "0"


def _name_the_cpu(cuda: Any) -> None:
    device = CpuDevice("cpu")
    cuda.current_device = lambda: device
    cuda.set_device = lambda device: None
    cuda.synchronize = lambda device=None: None
    cuda.current_stream = lambda device=None: None


def _stub_flash_attn() -> Callable[[], None]:
    """Makes flash_attn importable while one module loads; the returned function takes it away again."""
    if importlib.util.find_spec("flash_attn") is not None:
        return lambda: None

    def missing(*args: object, **kwargs: object) -> None:
        raise RuntimeError("flash_attn is not installed: sample packing and ring attention need a GPU")

    stubs = {name: types.ModuleType(name) for name in _FLASH_ATTN_MODULES}
    for name in ("index_first_axis", "pad_input", "rearrange", "unpad_input"):
        setattr(stubs["flash_attn.bert_padding"], name, missing)
    stubs["flash_attn.utils.distributed"].all_gather = missing  # type: ignore[attr-defined]
    sys.modules.update(stubs)

    def remove() -> None:
        for name in stubs:  # `find_spec` probes elsewhere must still see nothing
            sys.modules.pop(name, None)

    return remove


def _hide_mlflow() -> Callable[[], None]:
    """Makes `import mlflow` fail while one module loads, unless it is imported already or CUDA is there.

    DeepSpeed's autotuner, which every process of a training imports and none uses, takes it where it is.
    """
    if "mlflow" in sys.modules or has_cuda():
        return lambda: None
    sys.modules["mlflow"] = None  # type: ignore[assignment]  # Python's own way to say that there is none

    def remove() -> None:
        del sys.modules["mlflow"]

    return remove


def _pause_collection() -> Callable[[], None]:
    """Has the garbage collector wait while a package loads, and spare for good what was there then.

    It would look through a million new objects again and again, of which next to none are garbage.
    """
    if not gc.isenabled():
        return lambda: None
    gc.disable()

    def resume() -> None:
        gc.freeze()
        gc.enable()

    return resume


def _leave_out_scikit_learn(module: Any) -> None:
    # Transformers imports it, and SciPy with it, for one way of assisted generation.
    module.is_sklearn_available = lambda: False


def _mesh_on_cpu(module: Any) -> None:
    original = module.init_device_mesh

    def init_device_mesh(device_type: str, *args: Any, **kwargs: Any) -> Any:
        return original("cpu" if device_type == "cuda" else device_type, *args, **kwargs)

    module.init_device_mesh = init_device_mesh


class GlooBroadcaster:
    """The part of vLLM's PyNcclCommunicator that OpenRLHF's weight sync calls, over gloo."""

    def __init__(self, host: str, port: int, rank: int, world_size: int) -> None:
        from vllm.distributed.utils import stateless_init_torch_distributed_process_group

        self.group = stateless_init_torch_distributed_process_group(
            host, port, rank, world_size, backend="gloo"
        )

    def broadcast(self, tensor: Any, src: int, stream: object = None) -> None:
        from torch._C._distributed_c10d import BroadcastOptions

        options = BroadcastOptions()
        options.rootRank, options.rootTensor = src, 0
        self.group.broadcast([tensor], options).wait()


def _weight_sync_over_gloo(module: Any) -> None:
    def stateless_init_process_group(
        master_address: str, master_port: int, rank: int, world_size: int, device: object
    ) -> GlooBroadcaster:
        return GlooBroadcaster(master_address, master_port, rank, world_size)

    module.stateless_init_process_group = stateless_init_process_group


def _receive_weights_on_worker_device(module: Any) -> None:
    def update_weight(self: Any, name: str, dtype: Any, shape: Any, empty_cache: bool = False) -> None:
        import torch

        # The trainer's weights have 32 bits, and `load_weights` rounds to what the engine holds.
        assert dtype == torch.float32, f"{name}: trainer sends {dtype}"
        weight = torch.empty(shape, dtype=dtype, device=self.device)  # upstream writes device="cuda"
        self._model_update_group.broadcast(weight, src=0)
        if not self.model_runner.model.load_weights(weights=[(name, weight)]):
            raise RuntimeError(f"the engine did not take weight {name!r}")

    module.WorkerWrap.update_weight = update_weight


def _keep_weights_unpacked(module: Any) -> None:
    import torch

    def dispatch_cpu_unquantized_gemm(layer: Any, remove_weight: bool) -> None:
        # Upstream packs the weight into an opaque handle and empties `layer.weight`: the next sync would
        # fail, or, for lm_head, would silently change nothing.
        layer.cpu_linear = torch.nn.functional.linear

    module.dispatch_cpu_unquantized_gemm = dispatch_cpu_unquantized_gemm


def _allow_sleep_mode(module: Any) -> None:
    # CPUWorker's sleep and wake_up are no-ops already; only the configuration check refuses them.
    module.CpuPlatform.is_sleep_mode_available = lambda self: True


def _leave_out_the_shared_memory_op(module: Any) -> None:
    # It serves inference over several CPU ranks, which falls back to torch; compiling it takes minutes.
    module.build_shm_op = lambda: None


def _take_torchs_adam(module: Any) -> None:
    """Puts torch's AdamW in the place of DeepSpeed's, which is a C++ extension, compiled on first use.

    By that name and no other: at ZeRO stage 3 DeepSpeed offloads the states of its FusedAdam only.
    """
    import torch

    class FusedAdam(torch.optim.AdamW):
        def __init__(self, params: Any, *, adam_w_mode: bool = True, **settings: Any) -> None:
            if not adam_w_mode:
                raise ValueError("adam_w_mode: False is not for trainings without a GPU; leave it out")
            super().__init__(params, **settings)

    module.FusedAdam = FusedAdam


def _configure_deepspeed(module: Any) -> None:
    module.get_train_ds_config = _in_32_bits(module.get_train_ds_config)
    module.get_eval_ds_config = _in_32_bits(module.get_eval_ds_config)


def _in_32_bits(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Weights and gradients of 32 bits; matrix products in bfloat16 where the CPU has it."""

    def configured(*args: Any, **kwargs: Any) -> dict[str, Any]:
        config = original(*args, **kwargs)
        config = config | {kind: config[kind] | {"enabled": False} for kind in ("bf16", "fp16")}
        if cpu_dtype() == "float32":
            return config
        # No module is named for gradients in 16 bits, which are DeepSpeed's default under autocast.
        autocast = {"enabled": True, "dtype": "bfloat16", "lower_precision_safe_modules": []}
        return config | {"torch_autocast": autocast}

    return configured


def cpu_dtype() -> str:
    """What this training's matrix products are in; 32 bits where nobody says."""
    return os.environ.get(DTYPE_VARIABLE, "float32")


def _load_models_in_32_bits(module: Any) -> None:
    def convert_to_torch_dtype(param_dtype: str) -> Any:
        import torch

        return torch.float32

    module.convert_to_torch_dtype = convert_to_torch_dtype


def _configure_vllm(module: Any) -> None:
    original = module.EngineArgs.create_engine_config

    def create_engine_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        # A frozen Checker's engine has settings of its own.
        if self.worker_extension_cls.startswith("openrlhf."):
            self.dtype = cpu_dtype()  # OpenRLHF writes "bfloat16" on every machine
            # vLLM takes 128. Only whole blocks are shared, so voters would read prompts again.
            self.block_size = self.block_size or 32
        return original(self, *args, **kwargs)

    module.EngineArgs.create_engine_config = create_engine_config


PATCHES_BEFORE: dict[str, Callable[[], Callable[[], None]]] = {
    "deepspeed.autotuning.autotuner": _hide_mlflow,
    "openrlhf.models.ring_attn_utils": _stub_flash_attn,
    "openrlhf.trainer.ppo_trainer": _pause_collection,
    "openrlhf.trainer.ray": _pause_collection,
    "torch": _pause_collection,
    "transformers": _pause_collection,
    "vllm": _pause_collection,
}
PATCHES_AFTER: dict[str, Callable[[Any], None]] = {
    "torch.cuda": _name_the_cpu,
    "torch.distributed.device_mesh": _mesh_on_cpu,
    "transformers.utils.import_utils": _leave_out_scikit_learn,
    "deepspeed.comm.torch": _leave_out_the_shared_memory_op,
    "deepspeed.ops.adam.fused_adam": _take_torchs_adam,
    "openrlhf.utils.deepspeed.deepspeed_utils": _configure_deepspeed,
    "openrlhf.utils.utils": _load_models_in_32_bits,
    "openrlhf.utils.distributed_util": _weight_sync_over_gloo,
    "openrlhf.trainer.ray.vllm_worker_wrap": _receive_weights_on_worker_device,
    "vllm.engine.arg_utils": _configure_vllm,
    "vllm.model_executor.layers.utils": _keep_weights_unpacked,
    "vllm.platforms.cpu": _allow_sleep_mode,
}


def has_cuda() -> bool:
    """Whether torch, which is imported, has a GPU."""
    return bool(sys.modules["torch.cuda"].is_available())
