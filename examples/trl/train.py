"""GRPO with TRL on sums of two digits: a model of two layers that is made here, so that nothing is downloaded.

pip install 'rlotel' trl
python examples/trl/train.py                                  # on a CPU, some 20 seconds
torchrun --nproc-per-node 2 examples/trl/train.py             # two ranks, told of as one run
"""

import string

import torch
from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

import rlotel

rlotel.instrument()

ITERATIONS = 20
PAD, EOS, UNKNOWN = "<pad>", "<eos>", "<unk>"


def make_tokenizer() -> PreTrainedTokenizerFast:
    vocabulary = {token: number for number, token in enumerate((PAD, EOS, UNKNOWN, *string.printable))}
    characters = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    characters.pre_tokenizer = pre_tokenizers.Split("", behavior="isolated")
    characters.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=characters, pad_token=PAD, eos_token=EOS, unk_token=UNKNOWN, padding_side="left"
    )


def make_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    config = Qwen2Config(
        name_or_path="tiny-qwen2",
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )
    return Qwen2ForCausalLM(config)


def make_sums(number: int) -> Dataset:
    sums = [(a % 10, a // 10 % 10) for a in range(number)]
    return Dataset.from_list([{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in sums])


def digits(completions: list[str], **_: object) -> list[float]:
    """Reward answers of digits; right ones are for longer trainings."""
    return [sum(map(str.isdigit, completion)) / max(1, len(completion)) for completion in completions]


def main() -> None:
    tokenizer = make_tokenizer()
    trainer = GRPOTrainer(
        model=make_model(tokenizer),
        reward_funcs=[digits],
        args=GRPOConfig(
            output_dir="checkpoints",
            max_steps=ITERATIONS,
            per_device_train_batch_size=8,
            gradient_accumulation_steps=2,
            num_generations=4,
            max_completion_length=8,
            learning_rate=1e-2,
            logging_steps=1,
            eval_strategy="steps",
            eval_steps=10,
            per_device_eval_batch_size=8,
            save_strategy="steps",
            save_steps=10,
            report_to="none",
            use_cpu=not torch.cuda.is_available(),
            bf16=torch.cuda.is_available(),
        ),
        train_dataset=make_sums(256),
        eval_dataset=make_sums(8),
        processing_class=tokenizer,
    )
    trainer.train()


if __name__ == "__main__":
    main()
