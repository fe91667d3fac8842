"""OpenRLHF's own launcher with its own trainers, engines and agents, and without GPUs. Takes its arguments."""

import json
import os
import re
import runpy
import sys
from pathlib import Path

import models  # type: ignore[import-not-found]
import openrlhf.trainer.ray.launcher as launcher
import openrlhf.trainer.ray.ppo_actor as ppo_actor
import openrlhf.trainer.ray.ppo_critic as ppo_critic
import ray
from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

import rlotel

OUT = Path(os.environ["RUN_FOLDER"])
MODEL, PROMPTS = OUT / "tiny-qwen2", OUT / "prompts.jsonl"
CHARACTERS = "0123456789+=! "
CONFIG = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 128,
    "tie_word_embeddings": False,
}
STEP = re.compile(r"Global step (\d+): (\{.*\})")
SCORES = re.compile(r"(?:Eval at step|global_step) (\d+)(?:, eval_metrics)?: (\{.*\})")


def write_inputs(prompts: int) -> None:
    """A model's configuration and tokenizer, and questions."""
    words = {word: number for number, word in enumerate(["<pad>", "<end>", "<unk>", *CHARACTERS])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    names = {"pad_token": "<pad>", "eos_token": "<end>", "unk_token": "<unk>"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(str(MODEL))
    (MODEL / "config.json").write_text(json.dumps(CONFIG))
    rows = [{"input": f"{i % 9}+{i % 7}=", "answer": str(i % 9 + i % 7)} for i in range(prompts)]
    PROMPTS.write_text("".join(json.dumps(row) + "\n" for row in rows))


def read_logs() -> list[dict[str, float]]:
    """Keep what the trainers logged of their steps and evaluations; returns that of the steps."""
    session = Path(ray._private.worker._global_node.get_session_dir_path())
    found = {}
    for path in sorted((session / "logs").glob("worker-*.*")):
        for line in path.read_text(errors="replace").splitlines():
            for kind, pattern in (("step", STEP), ("scores", SCORES)):
                if (match := pattern.search(line)) is not None:
                    found[int(match[1]), kind] = eval(match[2], {"nan": float("nan")})
    with (OUT / "logged.jsonl").open("w") as file:
        for (step, kind), data in sorted(found.items()):
            file.write(json.dumps({"step": step, "kind": kind, "data": data}) + "\n")
    return [data for (_, kind), data in found.items() if kind == "step"]


def main() -> None:
    rlotel.instrument()
    write_inputs(int(os.environ.get("PROMPTS") or 4 * int(os.environ.get("ITERATIONS", "5"))))
    ppo_actor.PolicyModelActor = models.PolicyModelActor
    ppo_critic.CriticModelActor = models.CriticModelActor
    launcher.ReferenceModelActor = models.ReferenceModelActor
    launcher.RewardModelActor = models.RewardModelActor
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # Ray gives GPUs away by number, whether they are there or not
    ray.init(num_cpus=32, num_gpus=16, include_dashboard=False, object_store_memory=200 * 2**20)
    sys.argv += ["--actor.model_name_or_path", str(MODEL), "--data.prompt_dataset", str(PROMPTS)]
    sys.argv += [
        "--ckpt.path",
        str(OUT / "checkpoints"),
        "--data.input_key",
        "input",
        "--data.label_key",
        "answer",
    ]
    sys.argv += ["--ds.attn_implementation", "eager"]
    try:
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
    finally:
        steps = read_logs()
    ray.shutdown()
    print(f"seconds={sum(step['timing/step_total'] for step in steps):.6f}")


if __name__ == "__main__":
    main()
