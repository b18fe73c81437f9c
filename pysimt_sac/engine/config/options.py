"""Options are declared once, here and in each algorithm's file: a frozen dataclass whose fields are made by `option`.

Defaults, types, validation, docs/options.md and the error messages all derive from these declarations.
"""

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, Union

from pysimt_sac.errors import UserError

T = TypeVar("T")
LARGEST = 2**62  # larger integers overflow where they are used
LARGEST_BEAM = 1000  # hypotheses; more cost time and memory without better translations
USUAL_BEAM = "4 to 12 are usual"
ACTIVATIONS = ("linear", "tanh", "sigmoid", "relu", "gelu", "elu", "leaky_relu", "selu", "softplus", "softsign")


def option(
    default: Any,
    help: str,
    *,
    choices: tuple[Any, ...] | None = None,
    minimum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    maximum: float | None = None,
    advice: str = "correct the value",
    resume: bool = False,
    pysimt_only: bool = False,
) -> Any:
    """Declare one option: its default, meaning and valid values.

    choices: the allowed words; other types that the annotation allows are unrestricted.
    advice: what to do about a number outside its range.
    resume: the value may differ when a run is resumed, because it does not change the result.
    pysimt_only: accepted because pysimt's checkpoints contain it; the embedded engine does not use it.
    """
    metadata = {
        "help": help,
        "choices": choices,
        "minimum": minimum,
        "above": above,
        "below": below,
        "maximum": maximum,
        "advice": advice,
        "resume": resume,
        "pysimt_only": pysimt_only,
    }
    return dataclasses.field(default=default, metadata=metadata)


def defaults(cls: type) -> dict[str, Any]:
    """Return the default of every option of a section."""
    return {field.name: field.default for field in dataclasses.fields(cls)}


def names(cls: type) -> set[str]:
    """Return the names of a section's options."""
    return {field.name for field in dataclasses.fields(cls)}


def read_section(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Check `values` against the declarations of `cls`; keys that `cls` does not declare are ignored."""
    hints = typing.get_type_hints(cls)
    read = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        if field.name in values:
            place = f"{where} {field.name}"
            value = convert(values[field.name], hints[field.name], field.metadata["choices"], place)
            check_range(value, field.metadata, place)
            read[field.name] = value
    return cls(**read)


def convert(value: Any, annotation: Any, choices: tuple[Any, ...] | None, where: str) -> Any:
    """Return `value` as the annotated type, or raise an error that says what was expected."""
    alternatives = typing.get_args(annotation) if is_union(annotation) else (annotation,)
    for alternative in alternatives:
        converted = as_type(value, alternative)
        # Choices restrict words only; numbers, where the annotation allows them, are unrestricted.
        if converted is NOT or (choices and converted not in choices and isinstance(converted, str | bool)):
            continue
        return converted
    expected = " or ".join(describe(alternative) for alternative in alternatives)
    if choices:
        expected = f"one of {', '.join(str(choice) for choice in choices)}"
        numbers = [describe(alternative) for alternative in alternatives if alternative in (int, float)]
        expected = " or ".join([expected, *numbers])
    raise UserError(f"{value!r} is not {expected}", where, "correct the value")


NOT = object()  # marks a value of the wrong type; None is a valid value


def as_type(value: Any, annotation: Any) -> Any:
    """Return `value` as the type, or NOT. Integers pass as floats; bools never pass as numbers."""
    if annotation is type(None):
        return None if value is None else NOT
    if annotation is bool or annotation is int:
        return value if type(value) is annotation else NOT
    if annotation is float:
        return float(value) if type(value) in (int, float) and abs(value) <= sys.float_info.max else NOT
    if annotation is str:
        return str(value) if isinstance(value, str) or hasattr(value, "__fspath__") else NOT
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return as_tuple(value, arguments)
    return value if origin is dict and isinstance(value, dict) else NOT


def as_tuple(value: Any, arguments: tuple[Any, ...]) -> Any:
    """Convert a list, a tuple, or words separated by commas to a tuple of the annotated types."""
    if arguments[-1] is Ellipsis:
        if hasattr(value, "__fspath__"):
            value = [value]
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if not isinstance(value, list | tuple):
            return NOT
        arguments = (arguments[0],) * len(value)
    if not isinstance(value, list | tuple) or len(value) != len(arguments):
        return NOT
    items = tuple(as_type(item, argument) for item, argument in zip(value, arguments, strict=True))
    return NOT if NOT in items else items


def check_range(value: Any, limits: Mapping[str, Any], where: str) -> None:
    """Refuse a number outside its declared range."""
    if type(value) not in (int, float):
        return
    if type(value) is int and abs(value) > LARGEST:
        raise UserError(f"{value} is absurdly large", where, "correct the value")
    rules = (
        ("minimum", value < limits["minimum"] if limits["minimum"] is not None else False, "at least"),
        ("above", value <= limits["above"] if limits["above"] is not None else False, "more than"),
        ("maximum", value > limits["maximum"] if limits["maximum"] is not None else False, "at most"),
        ("below", value >= limits["below"] if limits["below"] is not None else False, "less than"),
    )
    for name, broken, words in rules:
        if broken:
            raise UserError(f"{value} must be {words} {limits[name]:g}", where, limits["advice"])


def is_union(annotation: Any) -> bool:
    """Return whether an annotation is `A | B`."""
    return typing.get_origin(annotation) in (Union, types.UnionType)


def describe(annotation: Any) -> str:
    """Describe an annotation in words."""
    simple = {bool: "True or False", int: "a whole number", float: "a finite number", str: "a word", type(None): "None"}
    if annotation in simple:
        return simple[annotation]
    if typing.get_origin(annotation) is tuple:
        arguments = typing.get_args(annotation)
        if arguments[-1] is Ellipsis:
            return "a list of words"
        return f"{len(arguments)} numbers in brackets"
    return "a dictionary"


@dataclasses.dataclass(frozen=True)
class TrainOptions:
    """The `[train]` section: pysimt's keys and defaults, all of them and no others."""

    model_type: str = option("", "the model to train, e.g. `SimultaneousNMT`")
    save_path: str = option("", "folder under which the run gets its own folder, named after the config", resume=True)
    seed: int = option(0, "random seed; 0 draws one and logs it", minimum=0)
    batch_size: int = option(32, "sentences per update", minimum=1)
    max_epochs: int = option(100, "stop after this many passes over the data", minimum=1, resume=True)
    max_iterations: int = option(1_000_000, "stop after this many updates", minimum=1, resume=True)
    optimizer: str = option(
        "adam", "optimiser", choices=("adam", "sgd", "adadelta", "adagrad", "asgd", "rmsprop", "rprop")
    )
    lr: float = option(0.0004, "learning rate; 0 takes torch's default", minimum=0)
    adam_betas: tuple[float, float] = option((0.9, 0.999), "Adam's decay rates")
    momentum: float = option(0.0, "momentum of SGD", minimum=0)
    nesterov: bool = option(False, "Nesterov momentum for SGD")
    gclip: float = option(5.0, "clip the gradient's norm at this; 0 does not clip", minimum=0)
    l2_reg: float = option(0.0, "weight decay, not applied to biases", minimum=0)
    lr_decay: bool | str = option(False, "how the rate falls", choices=(False, "plateau", "noam"))
    lr_decay_factor: float = option(0.1, "`plateau`: multiply the rate by this", above=0, below=1)
    lr_decay_patience: int = option(10, "`plateau`: validations without gain before the rate falls", minimum=0)
    lr_decay_min: float = option(0.000001, "`plateau`: lowest rate", minimum=0)
    lr_decay_revert: bool = option(False, "`plateau`: go back to the best weights when the rate falls")
    lr_warmup_steps: int = option(0, "`noam`: updates of warm-up", minimum=0)
    tf_model_dim: int | None = option(None, "`noam`: model size in its formula", minimum=1)
    eval_metrics: tuple[str, ...] = option(("loss",), "validation metrics; the first stops early and drives decay")
    eval_filters: tuple[str, ...] = option((), "post-processing of hypotheses and references before scoring")
    eval_freq: int = option(3000, "validate every so many updates; 0: after each epoch; negative: never")
    eval_start: int = option(1, "first epoch with validation", minimum=1)
    eval_zero: bool = option(False, "validate once before training")
    eval_beam: int = option(
        6,
        "beam size in validation, when `translator_type` is `bs`",
        minimum=1,
        maximum=LARGEST_BEAM,
        advice=USUAL_BEAM,
    )
    eval_batch_size: int = option(16, "sentences translated at once in validation", minimum=1, resume=True)
    eval_max_len: int = option(100, "longest translation in validation", minimum=1, maximum=100_000)
    patience: int = option(20, "stop after this many validations without gain", minimum=1, resume=True)
    save_best_metrics: bool = option(True, "keep the best checkpoint of each metric, not only of the first")
    checkpoint_freq: int = option(
        5000, "updates between saved states; 0: only after validations", minimum=0, resume=True
    )
    n_checkpoints: int = option(5, "numbered checkpoints to keep; 0: none", minimum=0, resume=True)
    save_optim_state: bool = option(False, "put the optimiser's state into checkpoints too", resume=True)
    pretrained_file: str = option(
        "", "checkpoint whose weights to start from; or a run's folder: its best one by the first metric"
    )
    pretrained_layers: tuple[str, ...] = option((), "prefixes of the weights to take from it; none: all that fit")
    freeze_layers: tuple[str, ...] = option((), "prefixes of the weights not to train")
    disp_freq: int = option(30, "updates between lines of the log", minimum=1, resume=True)
    tensorboard_dir: str = option("", "folder for TensorBoard curves; none: no TensorBoard", resume=True)
    num_workers: int = option(
        0, "processes that prepare batches (worth it on a GPU)", minimum=0, maximum=256, resume=True
    )
    pin_memory: bool = option(False, "page-locked batches, faster to copy to a GPU", resume=True)
    handle_oom: bool = option(False, "skip a batch that does not fit into GPU memory")


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """The `[model]` section of `SimultaneousNMT`: the network's shape, its text and its batches."""

    direction: str | None = option(None, "what is translated into what: `src:Text -> trg:Text`")
    emb_dim: int = option(128, "size of source and target embeddings", minimum=1)
    enc_dim: int = option(256, "size of the encoder's state, per direction", minimum=1)
    enc_type: str = option("gru", "encoder cell", choices=("gru", "lstm"))
    enc_bidirectional: bool = option(True, "read the source in both directions")
    n_encoders: int = option(1, "encoder layers", minimum=1, maximum=100)
    enc_proj_dim: int | None = option(None, "project the encoder's states to this size", minimum=1)
    enc_proj_activ: str | None = option("linear", "activation of that projection", choices=ACTIVATIONS)
    enc_lnorm: bool = option(False, "layer normalisation of the encoder's states")
    dec_dim: int = option(256, "size of the decoder's state", minimum=1)
    dec_type: str = option("gru", "decoder cell", choices=("gru",))
    dec_variant: str = option("cond", "decoder: conditional GRU", choices=("cond",))
    dec_inp_activ: str | None = option(None, "activation of the context before the second cell", choices=ACTIVATIONS)
    att_type: str = option("mlp", "attention", choices=("mlp", "dot"))
    att_temp: float = option(1.0, "attention temperature", above=0)
    att_activ: str | None = option("tanh", "activation inside `mlp` attention", choices=ACTIVATIONS)
    att_bottleneck: int | str = option(
        "ctx", "inner size of the attention: encoder's, decoder's, or a number", choices=("ctx", "hid"), minimum=1
    )
    out_logic: str = option(
        "simple", "output from the state alone, or with embedding and context", choices=("simple", "deep")
    )
    tied_emb: bool | str = option(
        False, "share embeddings: target in and out, or with the source too", choices=(False, "2way", "3way")
    )
    dropout_emb: float = option(0.0, "dropout on source embeddings", minimum=0, below=1)
    dropout_ctx: float = option(0.0, "dropout on the encoder's states", minimum=0, below=1)
    dropout_enc: float = option(0.0, "dropout between encoder layers", minimum=0, below=1)
    dropout_out: float = option(0.0, "dropout before the output layer", minimum=0, below=1)
    max_len: int | None = option(80, "leave out longer training sentences, by `bucket_by`, `<eos>` counted", minimum=2)
    bucket_by: str | None = option(None, "side whose lengths group the batches: `src` or `trg`; none: random batches")
    bucket_order: str | None = option(None, "curriculum by length; none: shuffled", choices=("ascending", "descending"))
    sampler_type: str = option("bucket", "batches of equal or of similar length", choices=("bucket", "approximate"))
    short_list: int = option(0, "keep only this many words of each vocabulary; 0: all", minimum=0)
    translator_type: str = option("gs", "search in validation: greedy or beam", choices=("gs", "bs"))
    translator_args: dict[str, Any] | None = option(None, "more arguments for that search", pysimt_only=True)
    plugin_modules: tuple[str, ...] = option((), "Python files that register models, metrics or rewards of your own")
    aux_dim: int | None = option(None, "image features", pysimt_only=True)
    aux_dropout: float = option(0.0, "image features", pysimt_only=True)
    aux_lnorm: bool = option(False, "image features", pysimt_only=True)
    aux_l2norm: bool = option(False, "image features", pysimt_only=True)
    aux_proj_dim: int | None = option(None, "image features", pysimt_only=True)
    aux_proj_activ: str | None = option(None, "image features", pysimt_only=True)
    num_regions: int = option(36, "image features", pysimt_only=True)
    feat_mode: str | None = option(None, "image features", pysimt_only=True)
    mm_fusion_op: str | None = option("concat", "image features", pysimt_only=True)
    mm_fusion_dropout: float = option(0.0, "image features", pysimt_only=True)


@dataclasses.dataclass(frozen=True)
class RecipeOptions:
    """Keys of `[model]` for every model: how to train, beyond pysimt's `[train]`, which refuses other keys."""

    lr_schedule: str | None = option(
        None,
        "how the rate moves from update to update after the warm-up, `lr` being the peak; none: as `lr_decay` says",
        choices=("constant", "cosine", "linear", "inverse_sqrt"),
    )
    lr_warmup: int = option(0, "`lr_schedule`: updates in which the rate rises linearly to `lr`", minimum=0)
    lr_total: int | None = option(
        None,
        "`cosine`, `linear`: the update at which the rate has fallen; none: the last that `max_iterations` and "
        "`max_epochs` allow, kept when a run is resumed with others",
        minimum=1,
    )
    lr_final: float = option(0.0, "`cosine`, `linear`: the part of `lr` that they fall to", minimum=0, maximum=1)
    label_smoothing: float = option(
        0.0, "share of the training loss's target spread over all words; not in validation", minimum=0, below=1
    )
    ema_decay: float = option(
        0.0,
        "exponential moving average of the weights, validated and saved in their place: the part that an update "
        "keeps of it, e.g. 0.999; 0: none",
        minimum=0,
        below=1,
    )
    weight_decay: float = option(0.0, "`adam`: decoupled weight decay (AdamW), not on biases", minimum=0)
    accumulate: int = option(
        1,
        "batches whose gradients make one update, as if they were one batch; the last of an epoch may be fewer",
        minimum=1,
    )
    precision: str = option(
        "float32",
        "number type of the matrix products in passes with gradient (torch.autocast); weights, recurrences written out "
        "by hand, the output layer and losses stay float32",
        choices=("float32", "bfloat16"),
    )
    batch_tokens: int = option(
        0,
        "training batches of at most so many target words, `<eos>` and padding counted, instead of `batch_size` "
        "sentences; a longer sentence is a batch of its own; 0: off",
        minimum=0,
    )
