"""Keys that contradict each other, have no effect, or ask too much of a host."""

import dataclasses
from typing import Any

from pysimt_sac.core.errors import UserError
from pysimt_sac.core.sections import ModelOptions, RecipeOptions, TrainOptions
from pysimt_sac.hosts.choice import NETWORKS

FALLING = ("cosine", "linear")  # schedules with an end
SMOOTHED = NETWORKS  # models trained with the loss of `SimultaneousNMT.forward`
ACCUMULATED = (*NETWORKS, "MLENMT")  # whose `forward` only computes; learners make their own updates in it


def check_recipe(recipe: RecipeOptions, train: TrainOptions, where: object) -> list[str]:
    """Refuse keys that contradict each other; return warnings about those without effect."""
    place, model = f"{where} [model]", train.model_type.lower()
    if recipe.lr_schedule and train.lr_decay:
        hint = f"set lr_decay: False to use the schedule, or lr_schedule: none to keep {train.lr_decay}"
        what = f"{recipe.lr_schedule} and [train] lr_decay: {train.lr_decay} both change the learning rate"
        raise UserError(what, f"{place} lr_schedule", hint)
    if train.lr_decay == "noam" and not (train.tf_model_dim and train.lr_warmup_steps):
        raise UserError("noam needs tf_model_dim and lr_warmup_steps", f"{where} [train] lr_decay", "set both, above 0")
    if recipe.lr_schedule in FALLING and recipe.lr_total is not None and recipe.lr_total <= recipe.lr_warmup:
        what = f"{recipe.lr_total} is not more than lr_warmup, {recipe.lr_warmup}"
        raise UserError(what, f"{place} lr_total", "it includes the warm-up")
    if recipe.weight_decay > 0 and train.optimizer != "adam":
        raise UserError(f"is for adam, not for {train.optimizer}", f"{place} weight_decay", "use [train] l2_reg")
    if recipe.weight_decay > 0 and train.l2_reg > 0:
        raise UserError("and [train] l2_reg both decay the weights", f"{place} weight_decay", "set one of them to 0")
    if recipe.label_smoothing > 0 and model not in map(str.lower, SMOOTHED):
        what = f"{train.model_type} has its own loss, which is not smoothed"
        raise UserError(what, f"{place} label_smoothing", f"only {' and '.join(SMOOTHED)} support it")
    if recipe.accumulate > 1 and model not in map(str.lower, ACCUMULATED):
        what = f"{train.model_type} makes its own updates"
        hint = f"only {' and '.join(ACCUMULATED)} support it; raise batch_size instead"
        raise UserError(what, f"{place} accumulate", hint)
    falls = f"lr_schedule: {' or '.join(FALLING)}", recipe.lr_schedule in FALLING
    needs = {"lr_warmup": ("an lr_schedule, e.g. constant", bool(recipe.lr_schedule))}
    return without_effect("model", recipe, {**needs, "lr_total": falls, "lr_final": falls})


def keys_without_effect(train: TrainOptions, model: ModelOptions) -> list[str]:
    """Return a warning for each key of `[train]` and `[model]` that is not at its default and has no effect."""
    plateau = "lr_decay: plateau", train.lr_decay == "plateau"
    needs = {
        "momentum": ("optimizer: sgd", train.optimizer == "sgd"),
        "nesterov": ("optimizer: sgd", train.optimizer == "sgd"),
        "lr_warmup_steps": ("lr_decay: noam; [model] lr_schedule has lr_warmup", train.lr_decay == "noam"),
        "eval_beam": ("[model] translator_type: bs", model.translator_type == "bs" or train.eval_beam == 1),
        "max_len": ("bucket_by", bool(model.bucket_by) or model.max_len is None),
        "bucket_order": ("bucket_by", bool(model.bucket_by)),
        "translator_args": ("model_type: SimultaneousWaitKNMT", train.model_type != "SimultaneousNMT"),
    }
    needs |= {field.name: plateau for field in dataclasses.fields(train) if field.name.startswith("lr_decay_")}
    return without_effect("train", train, needs) + without_effect("model", model, needs)


def without_effect(section: str, options: Any, needs: dict[str, tuple[str, bool]]) -> list[str]:
    """Return warnings about keys that are not at their default. needs: what a key needs, and whether that is given."""
    warned = []
    for field in dataclasses.fields(options):
        need, is_given = ("pysimt", False) if field.metadata["pysimt_only"] else needs.get(field.name, ("", True))
        if getattr(options, field.name) != field.default and not is_given:
            warned.append(f"[{section}] {field.name} has no effect without {need}")
    return warned


def check_supported_by_pysimt(recipe: RecipeOptions, where: object) -> None:
    """Refuse what pysimt's loop would ignore; `check_recipe` has refused what no host supports for this model."""
    reasons = {
        "precision": "pysimt computes in float32",
        "wandb_project": "pysimt draws its curves in TensorBoard",
    }
    default = RecipeOptions()
    given = [name for name in reasons if getattr(recipe, name) != getattr(default, name)]
    if given:
        refused = ", ".join(f"{name} ({reasons[name]})" for name in given)
        what = f"{refused}: only the embedded engine can do that, not pysimt"
        raise UserError(what, f"{where} [model]", "set PYSIMT_SAC_HOST=embedded, or leave it out")
