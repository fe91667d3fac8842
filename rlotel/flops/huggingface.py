"""Turns a Hugging Face config into an `Architecture`: which matrices, how many layers, which windows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rlotel.flops.architecture import Architecture, AttentionCore, Linear, UnknownArchitecture
from rlotel.flops.settings import Settings, load, value_of


def read_config(config: object) -> Architecture:
    """Read a model's architecture from its Hugging Face config.

    Of a model with towers (vision, audio), the language tower is read and
    `Architecture.language_tower_only` says so. Extra heads for multi-token prediction are not counted.

    Args:
        config: The path of a `config.json` or of the folder it lies in, its mapping, or any object with the
            same attributes (a `PretrainedConfig` of transformers, which is not needed here).

    Returns:
        The architecture; it is immutable, so read it once and keep it.

    Raises:
        UnknownArchitecture: The model is of no known family, or the config lacks a needed value.
        OSError: The file cannot be read.
    """
    whole = load(config)
    tower = value_of(whole, "text_config")
    settings = Settings(whole if tower is None else tower, nested=tower is not None)
    linears = (*_attention(settings), *_mlps(settings), _lm_head(settings))
    return Architecture(
        model_type=settings.model_type,
        linears=linears,
        cores=tuple(_cores(settings)),
        other_parameters=_other_parameters(settings, linears),
        language_tower_only=tower is not None or value_of(whole, "vision_config") is not None,
    )


def _head_dim(settings: Settings) -> int:
    heads = settings.size("num_attention_heads")
    return settings.size("head_dim", default=settings.size("hidden_size") // heads)


def _attention(settings: Settings) -> Iterator[Linear]:
    layers, hidden = settings.size("num_hidden_layers"), settings.size("hidden_size")
    shapes = _latent_shapes(settings, hidden) if settings.family.mla else _shapes(settings, hidden)
    biased_by_config = settings.flag("attention_bias")
    for name, inputs, outputs in shapes:
        bias = biased_by_config or name in settings.family.biases
        yield Linear(name, "attention_projections", inputs, outputs, layers, bias=bias)


def _shapes(settings: Settings, hidden: int) -> list[tuple[str, int, int]]:
    heads = settings.size("num_attention_heads")
    width = heads * _head_dim(settings)
    kv_width = settings.size("num_key_value_heads", default=heads) * _head_dim(settings)
    output = (settings.family.output_projection, width, hidden)
    if settings.family.fused:
        return [("qkv_proj", hidden, width + 2 * kv_width), output]
    return [("q_proj", hidden, width), ("k_proj", hidden, kv_width), ("v_proj", hidden, kv_width), output]


def _latent_shapes(settings: Settings, hidden: int) -> list[tuple[str, int, int]]:
    heads, rank = settings.size("num_attention_heads"), settings.size("kv_lora_rank")
    nope, rope = settings.size("qk_nope_head_dim"), settings.size("qk_rope_head_dim")
    v_dim = settings.size("v_head_dim")
    query_rank = settings.count("q_lora_rank")
    if query_rank:
        queries = [("q_a_proj", hidden, query_rank), ("q_b_proj", query_rank, heads * (nope + rope))]
    else:
        queries = [("q_proj", hidden, heads * (nope + rope))]
    return [
        *queries,
        ("kv_a_proj_with_mqa", hidden, rank + rope),
        ("kv_b_proj", rank, heads * (nope + v_dim)),
        ("o_proj", heads * v_dim, hidden),
    ]


def _mixture_layers(settings: Settings) -> int:
    """How many layers are mixtures of experts."""
    if not settings.family.moe:
        return 0
    first, every = settings.count("first_k_dense_replace"), settings.size("moe_layer_freq", default=1)
    step, dense = settings.size("decoder_sparse_step", default=1), settings.raw("mlp_only_layers") or ()
    if not isinstance(dense, Sequence):
        raise UnknownArchitecture(f"mlp_only_layers of the {settings.model_type} config is {dense!r}, no list")
    return sum(
        i >= first and i % every == 0 and (i + 1) % step == 0 and i not in dense
        for i in range(settings.size("num_hidden_layers"))
    )


def _mlps(settings: Settings) -> Iterator[Linear]:
    hidden = settings.size("hidden_size")
    mixtures = _mixture_layers(settings)
    dense = settings.size("num_hidden_layers") - mixtures
    if dense:
        yield from _mlp(settings, settings.size("intermediate_size"), layers=dense)
    if not mixtures:
        return
    experts = settings.size("num_experts", "num_local_experts", "n_routed_experts")
    width = settings.size("moe_intermediate_size", "intermediate_size")
    active = settings.size("num_experts_per_tok")
    yield from _mlp(settings, width, layers=mixtures, copies=experts, active=active)
    shared = settings.count("n_shared_experts")
    if shared:
        yield from _mlp(settings, width, layers=mixtures, copies=shared, active=shared)
    if settings.count("shared_expert_intermediate_size"):
        yield from _mlp(settings, settings.size("shared_expert_intermediate_size"), layers=mixtures)
        yield Linear("shared_expert_gate", "router", hidden, 1, mixtures)
    yield Linear("gate", "router", hidden, experts, mixtures, bias="gate" in settings.family.biases)


def _mlp(settings: Settings, width: int, *, layers: int, copies: int = 1, active: int = 1) -> Iterator[Linear]:
    hidden, family = settings.size("hidden_size"), settings.family
    if not family.gated:
        shapes = [("fc1", hidden, width), ("fc2", width, hidden)]
    elif family.fused:
        shapes = [("gate_up_proj", hidden, 2 * width), ("down_proj", width, hidden)]
    else:
        shapes = [("gate_proj", hidden, width), ("up_proj", hidden, width), ("down_proj", width, hidden)]
    for name, inputs, outputs in shapes:
        bias = settings.flag("mlp_bias") or name in family.biases
        yield Linear(name, "mlp", inputs, outputs, layers, copies, active, bias)


def _lm_head(settings: Settings) -> Linear:
    bias = "lm_head" in settings.family.biases
    return Linear("lm_head", "lm_head", settings.size("hidden_size"), settings.size("vocab_size"), bias=bias)


def _other_parameters(settings: Settings, linears: Sequence[Linear]) -> int:
    family, hidden = settings.family, settings.size("hidden_size")
    layers, heads = settings.size("num_hidden_layers"), settings.size("num_attention_heads")
    norm = 2 * hidden if family.norm_bias else hidden
    in_attention = 2 * _head_dim(settings) if family.qk_norm else 0
    if family.mla:
        in_attention = settings.count("q_lora_rank") + settings.size("kv_lora_rank")
    per_layer = family.norms * norm + in_attention + (heads if family.sinks else 0)
    embedding = 0 if settings.flag("tie_word_embeddings") else settings.size("vocab_size") * hidden
    routers = [linear for linear in linears if linear.name == "gate" and family.expert_score_bias]
    corrections = sum(router.layers * router.outputs for router in routers)
    return layers * per_layer + norm + embedding + corrections


def _cores(settings: Settings) -> Iterator[AttentionCore]:
    heads = settings.size("num_attention_heads")
    if settings.family.mla:
        rope, v_dim = settings.size("qk_rope_head_dim"), settings.size("v_head_dim")
        qk_dim, cached = settings.size("qk_nope_head_dim") + rope, settings.size("kv_lora_rank") + rope
    else:
        qk_dim = v_dim = _head_dim(settings)
        cached = 2 * settings.size("num_key_value_heads", default=heads) * qk_dim
    for window, layers in Counter(_windows(settings)).items():
        yield AttentionCore(layers, heads, qk_dim, v_dim, cached, window)


def _windows(settings: Settings) -> list[int | None]:
    """The sliding window of each layer, None where the layer looks all the way back."""
    layers = settings.size("num_hidden_layers")
    window = settings.size("sliding_window") if settings.count("sliding_window") else None
    kinds = settings.raw("layer_types")
    if kinds is None:
        return [window if slides else None for slides in _slides(settings, layers)]
    if not isinstance(kinds, Sequence) or len(kinds) != layers:
        raise UnknownArchitecture(f"layer_types of the {settings.model_type} config do not name {layers} layers")
    for kind in kinds:
        if kind not in ("full_attention", "sliding_attention"):
            raise UnknownArchitecture(f"no FLOP count for layers of type {kind!r}, so no MFU")
    return [window if kind == "sliding_attention" else None for kind in kinds]


def _slides(settings: Settings, layers: int) -> list[bool]:
    """Which layers slide, by the family's rule."""
    rule, switched_on = settings.family.sliding, settings.flag("use_sliding_window")
    if rule == "every_layer" or (rule == "if_switched_on" and switched_on):
        return [True] * layers
    if rule == "from_layer_if_switched_on" and switched_on:
        first = settings.count("max_window_layers")
        return [i >= first for i in range(layers)]
    if rule == "all_but_each_nth":
        nth = settings.size("sliding_window_pattern", "_sliding_window_pattern")
        return [(i + 1) % nth != 0 for i in range(layers)]
    return [False] * layers
