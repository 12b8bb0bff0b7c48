"""The worker of a warm-up: OpenRLHF's `train_sft` with a log of its steps, on GPUs or without.

Run by `march warmup` as `python -m pipeline.warmup.worker RUN`. Where a CPU multiplies bfloat16 in hardware
(AVX512-BF16, AMX) the passes compute in it (`pipeline.cpu`); weights and optimizer stay in 32 bits.
"""

import json
import os
import runpy
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from pipeline import cpu
from pipeline.launch.failures import write_failure
from pipeline.launch.openrlhf_args import lora_arguments
from pipeline.launch.reward_servers import has_gpu
from pipeline.models.cache import Origin, now, origin_file, read_origin
from pipeline.record.run import RESULT_FILE
from pipeline.record.tracking import RUN_FILE, StepLog, read_steps
from pipeline.warmup.prepare import DEMONSTRATIONS_FILE
from pipeline.warmup.run import CHECKPOINTS, MODEL, WarmupState
from reward.offline.files import file_sha256, replace_file

_MODULE = "openrlhf.cli.train_sft"
_SAVED = ".saved"  # what OpenRLHF writes; the model is whole when it is renamed


def sft_arguments(state: WarmupState, folder: Path, *, cuda: bool) -> list[str]:
    """The command line of OpenRLHF's `train_sft`; `cuda`: whether a GPU trains."""
    recipe, settings = state.recipe, state.recipe.warmup
    valued: dict[str, object] = {
        "model.model_name_or_path": recipe.model_path,
        "data.dataset": folder / DEMONSTRATIONS_FILE,
        "data.input_key": "input",
        "data.output_key": "output",
        "data.input_template": "",  # the prompts are rendered
        "data.max_len": settings.max_tokens,
        "train.batch_size": settings.batch_size,
        "train.micro_batch_size": settings.micro_batch_size,
        "train.max_epochs": settings.epochs,
        "train.seed": recipe.seed,
        "adam.lr": settings.lr,
        "lr_scheduler": settings.lr_scheduler,
        "lr_warmup_ratio": settings.warmup_ratio,
        "ds.zero_stage": recipe.cluster.zero_stage if cuda else 2,
        "ds.param_dtype": "bf16",
        "ds.attn_implementation": recipe.cluster.attention,
        "ckpt.path": folder / CHECKPOINTS,
        "ckpt.output_dir": folder / _SAVED,
        "ckpt.save_steps": settings.save_every,
        "ckpt.max_num": 1,
    }
    flags = {
        "ckpt.load_enable": True,
        "ds.packing_samples": recipe.cluster.packing and cuda,
        "ds.adam_offload": recipe.cluster.adam_offload and cuda,
        "model.gradient_checkpointing_enable": recipe.cluster.gradient_checkpointing and cuda,
    }
    words = [word for name, value in valued.items() for word in (f"--{name}", str(value))]
    return [*words, *(f"--{flag}" for flag, on in flags.items() if on), *lora_arguments(settings.lora)]


def run(folder: Path) -> None:
    """Trains, and writes the model, where it came from, and last `result.json`."""
    state = WarmupState.model_validate_json((folder / RUN_FILE).read_text())
    cuda = has_gpu()
    start = time.monotonic()
    try:
        _train(state, folder, cuda=cuda)
        _finish(state, folder)
    except BaseException as error:
        write_failure(folder, error)
        raise
    steps = read_steps(folder)
    result = {"steps": len(steps), "model": MODEL, "worker_s": time.monotonic() - start, "last": steps[-1]}
    replace_file(folder / RESULT_FILE, json.dumps(result) + "\n")


def _train(state: WarmupState, folder: Path, *, cuda: bool) -> None:
    os.environ.setdefault("HF_DATASETS_CACHE", str(folder / ".datasets"))  # else it grows in the user's
    if not cuda:
        cpu.install()
    import openrlhf.trainer.sft_trainer

    openrlhf.trainer.sft_trainer.SFTTrainer = logged(openrlhf.trainer.sft_trainer.SFTTrainer, StepLog(folder))
    sys.argv = [_MODULE, *sft_arguments(state, folder, cuda=cuda)]
    runpy.run_module(_MODULE, run_name="__main__")


def logged(trainer: Any, log: StepLog) -> Any:
    """OpenRLHF's trainer that writes each update to `steps.jsonl`, before its checkpoint."""
    from pipeline.warmup import completion_logits

    class LoggedTrainer(trainer):  # type: ignore[misc]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            completion_logits.install(self.model)

        def fit(self, *args: Any, **kwargs: Any) -> None:
            self._begin_step()
            super().fit(*args, **kwargs)

        def _begin_step(self) -> None:
            self._begun = time.monotonic()
            self._lr = float(self.scheduler.get_last_lr()[0])  # the update moves the scheduler on

        def save_logs_and_checkpoints(
            self, args: Any, global_step: int, step_bar: Any, logs_dict: Any = None, client_states: Any = None
        ) -> None:
            figures = {
                "warmup/loss": float(logs_dict["loss_mean"]),
                "warmup/lr": self._lr,
                "warmup/grad_norm": float(logs_dict["grad_norm"]),
                "time/step_s": time.monotonic() - self._begun,
            }
            log.append(global_step, figures)
            super().save_logs_and_checkpoints(args, global_step, step_bar, logs_dict, client_states)
            self._begin_step()

    return LoggedTrainer


def _finish(state: WarmupState, folder: Path) -> None:
    """Makes one whole model of what OpenRLHF saved, adapters added, and says where it came from."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    saved = folder / _SAVED
    base = state.recipe.model_path if state.recipe.warmup.lora else saved
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    if state.recipe.warmup.lora:
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, saved).merge_and_unload()
    whole = folder / ".whole"
    model.save_pretrained(whole)  # once, not twice, where the head is the embedding
    AutoTokenizer.from_pretrained(state.recipe.model_path).save_pretrained(whole)
    for path in whole.iterdir():
        path.chmod(0o644)  # safetensors makes its file private; another user may train or serve
    shutil.rmtree(folder / MODEL, ignore_errors=True)
    os.replace(whole, folder / MODEL)
    shutil.rmtree(saved)
    parent = read_origin(Path(state.recipe.model_path))
    prepared, settings = state.prepared, state.recipe.warmup
    origin = Origin(
        name=folder.name,
        source="warmup",
        location=state.recipe.model,
        version=parent.version if parent else "",
        sha256=prepared.sha256,
        conversion=f"{prepared.num_written * settings.epochs:,} demonstrations, {state.num_steps} updates",
        licence=parent.licence if parent else "",
        end_token=AutoTokenizer.from_pretrained(folder / MODEL).eos_token,
        num_parameters=model.num_parameters(),
        dtype="F32",
        fetched=now(),
        files={path.name: file_sha256(path) for path in sorted((folder / MODEL).iterdir())},
    )
    replace_file(origin_file(folder / MODEL), origin.model_dump_json(indent=2) + "\n")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
