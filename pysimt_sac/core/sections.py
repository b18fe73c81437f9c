"""The sections of a configuration that every host reads: pysimt's `[train]` and `[model]`, and our training recipe."""

import dataclasses
from typing import Any

from pysimt_sac.core.options import option

LARGEST_BEAM = 1000  # hypotheses; more cost time and memory without better translations
USUAL_BEAM = "4 to 12 are usual"
LONGEST_TRANSLATION = 100_000  # words; memory for them is allocated in advance
ACTIVATIONS = ("linear", "tanh", "sigmoid", "relu", "gelu", "elu", "leaky_relu", "selu", "softplus", "softsign")


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
    eval_max_len: int = option(100, "longest translation in validation", minimum=1, maximum=LONGEST_TRANSLATION)
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
    translator_type: str = option("gs", "search in validation: greedy, beam or wait-k", choices=("gs", "bs", "wk"))
    translator_args: dict[str, Any] | None = option(
        None, "`{'k': 3}` makes a wait-k model: its first word follows 3 of the source"
    )
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
    wandb_project: str = option(
        "", "Weights & Biases project for the curves, beside the log; none: not used (pip install 'pysimt_sac[wandb]')",
        resume=True,
    )  # fmt: skip
    batch_tokens: int = option(
        0,
        "training batches of at most so many target words, `<eos>` and padding counted, instead of `batch_size` "
        "sentences; a longer sentence is a batch of its own; 0: off",
        minimum=0,
    )


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """The settings of a search: options of `pysimt translate`, and of the Python API."""

    func: str = option(
        "gs",
        "greedy search, beam search or sampling; inside pysimt also its simultaneous greedy search (sgs), wait-k (wk) "
        "and its own beam search (bs-pysimt)",
        choices=("gs", "bs", "sample", "sgs", "wk", "bs-pysimt"),
    )
    beam_size: int = option(6, "hypotheses kept by beam search", minimum=1, maximum=LARGEST_BEAM, advice=USUAL_BEAM)
    lp_alpha: float = option(0.0, "length penalty of beam search; 0 divides by the length", minimum=0)
    suppress_unk: bool = option(False, "never produce <unk>")
    n_best: bool = option(False, "write all hypotheses of beam search, with scores")
    max_len: int = option(100, "longest translation", minimum=1, maximum=LONGEST_TRANSLATION)
    batch_size: int = option(16, "sentences translated at once", minimum=1)
    temperature: float = option(1.0, "sampling: below 1 sharpens, above 1 flattens", above=0)
    top_k: int = option(0, "sampling: only from the K likeliest words; 0: all", minimum=0)
    seed: int = option(1234, "sampling: random seed", minimum=0)

    @property
    def suffix(self) -> str:
        """The suffix of output files for this search."""
        return f"beam{self.beam_size}" if self.func == "bs" else self.func
