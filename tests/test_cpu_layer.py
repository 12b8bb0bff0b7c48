"""The CPU platform layer: each patch still has its target, does its work, and stays away where CUDA is."""

import gc
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pipeline import cpu

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="the layer is a no-op with CUDA")


@pytest.mark.parametrize("module", [*cpu.PATCHES_BEFORE, *cpu.PATCHES_AFTER])
def test_the_patched_modules_still_exist(module: str) -> None:
    cpu.install()  # finding a module imports the packages that it lies in
    assert importlib.util.find_spec(module) is not None


@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
        (
            "openrlhf.trainer.ppo_utils.replay_buffer",
            "NaiveReplayBuffer",
            "cuda:{torch.cuda.current_device()}",
        ),
        ("openrlhf.trainer.ray.ppo_actor", "ActorPPOTrainer", "stateless_init_process_group"),
        ("openrlhf.utils.deepspeed.deepspeed", "DeepspeedStrategy", "init_device_mesh"),
        ("openrlhf.utils.deepspeed.deepspeed", "DeepspeedStrategy", "get_train_ds_config("),
        ("openrlhf.utils.deepspeed.deepspeed", "DeepspeedStrategy", "get_eval_ds_config("),
        ("openrlhf.models.actor", "Actor", "from openrlhf.utils.utils import convert_to_torch_dtype"),
        ("openrlhf.models.model", "get_llm_for_sequence_regression", "import convert_to_torch_dtype"),
        ("openrlhf.trainer.ray.vllm_engine", "create_vllm_engines", '"dtype": "bfloat16"'),
        (
            "openrlhf.trainer.ray.vllm_engine",
            "create_vllm_engines",
            '"worker_extension_cls": "openrlhf.trainer.ray.vllm_worker_wrap.WorkerWrap"',
        ),
        ("deepspeed.comm.torch", "TorchBackend", "self.shm_comm_op = build_shm_op()"),
        ("deepspeed.runtime.engine", "DeepSpeedEngine", "from deepspeed.ops.adam import FusedAdam"),
        (
            "deepspeed.runtime.zero.stage3",
            "DeepSpeedZeroOptimizer_Stage3",
            "self.optimizer.__class__ == deepspeed.ops.adam.fused_adam.FusedAdam",
        ),
    ],
)
def test_the_calls_that_need_a_patch_are_still_there(module: str, name: str, says: str) -> None:
    cpu.install()
    assert says in inspect.getsource(getattr(importlib.import_module(module), name))


def test_upstream_still_hard_codes_cuda_in_the_weight_sync() -> None:
    spec = importlib.util.find_spec("openrlhf.trainer.ray.vllm_worker_wrap")
    assert spec and spec.origin
    assert 'device="cuda"' in Path(spec.origin).read_text()


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("deepspeed.autotuning.autotuner", "    import mlflow\n"),
        ("transformers.generation.candidate_generator", "if is_sklearn_available():\n    from sklearn"),
    ],
)
def test_upstream_still_imports_what_no_training_uses(module: str, says: str) -> None:
    spec = importlib.util.find_spec(module)
    assert spec and spec.origin
    assert says in Path(spec.origin).read_text()


def test_current_device_is_a_device_and_formats_as_a_digit() -> None:
    cpu.install()
    device = torch.cuda.current_device()
    assert torch.zeros(1, device=device).device.type == "cpu"
    assert torch.device(f"cuda:{device}") == torch.device("cuda:0")


def printed_by(code: str) -> str:
    """What a new process prints."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_flash_attn_is_visible_only_while_the_module_that_needs_it_loads() -> None:
    code = (
        "from pipeline import cpu; cpu.install();"
        "import openrlhf.models.ring_attn_utils, importlib.util, sys;"
        "assert importlib.util.find_spec('flash_attn') is None; assert 'flash_attn' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_process_of_a_training_imports_neither_mlflow_nor_scikit_learn_and_may_later() -> None:
    code = (
        "from pipeline import cpu; cpu.install(); import sys;"
        "import openrlhf.trainer.ray.ppo_actor;"
        "found = {'mlflow', 'sklearn', 'deepspeed.autotuning.autotuner'} & set(sys.modules);"
        "import mlflow; assert mlflow.__version__; print(found)"
    )
    assert printed_by(code).splitlines()[-1] == "{'deepspeed.autotuning.autotuner'}"


def test_mlflow_that_is_there_is_not_hidden() -> None:
    importlib.import_module("mlflow")
    before = sys.modules["mlflow"]
    undo = cpu.PATCHES_BEFORE["deepspeed.autotuning.autotuner"]()
    assert sys.modules["mlflow"] is before
    undo()
    assert sys.modules["mlflow"] is before


def test_nothing_is_collected_while_packages_load_and_what_was_there_is_spared() -> None:
    code = (
        "import gc, sys; from pipeline import cpu; cpu.install(); collected = [];"
        "gc.collect(); gc.callbacks.append(lambda phase, info: collected.append(phase));"
        "import torch; during = len(collected);"
        "print(during, gc.isenabled(), gc.get_freeze_count() > 50_000)"
    )
    assert printed_by(code).split() == ["0", "True", "True"]


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        cpu.PATCHES_BEFORE["torch"]()()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_installing_twice_changes_nothing() -> None:
    cpu.install()
    finders = list(sys.meta_path)
    cpu.install()
    assert sys.meta_path == finders


def test_deepspeeds_adam_is_torchs_and_needs_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu.install()
    monkeypatch.setenv("CXX", "false")
    from deepspeed.ops.adam import FusedAdam

    def trained(kind: type[torch.optim.Optimizer]) -> torch.Tensor:
        weight = torch.nn.Parameter(torch.tensor([0.5, -2.0]))
        optimizer = kind([weight], lr=0.1, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1)  # type: ignore[call-arg]
        for _ in range(3):
            optimizer.zero_grad()
            weight.square().sum().backward()
            optimizer.step()
        return weight.detach()

    assert torch.equal(trained(FusedAdam), trained(torch.optim.AdamW))
    with pytest.raises(ValueError, match="adam_w_mode: False"):
        FusedAdam([torch.zeros(1)], adam_w_mode=False)


@pytest.mark.parametrize("param_dtype", ["bf16", "fp16"])
def test_deepspeed_computes_in_32_bits(param_dtype: str) -> None:
    cpu.install()
    from openrlhf.utils.deepspeed import deepspeed

    train = deepspeed.get_train_ds_config(offload=False, param_dtype=param_dtype)
    evaluation = deepspeed.get_eval_ds_config(offload=False, param_dtype=param_dtype)
    for config in (train, evaluation):
        assert not config["bf16"]["enabled"]
        assert not config["fp16"]["enabled"]


def test_models_load_in_32_bits() -> None:
    cpu.install()
    from openrlhf.utils.utils import convert_to_torch_dtype

    assert convert_to_torch_dtype("bf16") is torch.float32


def test_openrlhfs_engines_sample_in_32_bits_and_share_small_blocks_and_others_are_left_alone() -> None:
    code = (
        "from pipeline import cpu; cpu.install();"
        "from vllm.engine.arg_utils import AsyncEngineArgs; from pipeline.settings.recipe import TINY_POLICY;"
        "given = dict(model=str(TINY_POLICY), dtype='bfloat16');"
        "extended = dict(worker_extension_cls='openrlhf.trainer.ray.vllm_worker_wrap.WorkerWrap');"
        "made = [AsyncEngineArgs(**given, **more).create_engine_config() for more in (extended, {})];"
        "print([(str(one.model_config.dtype), one.cache_config.block_size) for one in made])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[('torch.float32', 32), ('torch.bfloat16', 128)]"


def test_deepspeed_compiles_no_communication_for_the_cpu() -> None:
    cpu.install()
    backend = importlib.import_module("deepspeed.comm.torch")
    assert backend.build_shm_op() is None
