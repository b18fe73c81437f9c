"""What the keys of a training recipe (`RecipeOptions`) demand of each other, of `[train]`, of models and of hosts."""

from pysimt_sac.engine.config.options import RecipeOptions, TrainOptions
from pysimt_sac.errors import UserError

FALLING = ("cosine", "linear")  # the schedules that have an end
SMOOTHED = ("SimultaneousNMT",)  # whose training loss is that of `SimultaneousNMT.forward`


def check_recipe(recipe: RecipeOptions, train: TrainOptions, where: object) -> list[str]:
    """Refuse keys that contradict each other; warn of those that have no effect."""
    place = f"{where} [model]"
    if recipe.lr_schedule and train.lr_decay:
        todo = f"set lr_decay: False to use the schedule, or lr_schedule: none to keep {train.lr_decay}"
        what = f"{recipe.lr_schedule} and [train] lr_decay: {train.lr_decay} both move the rate"
        raise UserError(what, f"{place} lr_schedule", todo)
    if recipe.lr_schedule in FALLING and recipe.lr_total is not None and recipe.lr_total <= recipe.lr_warmup:
        what = f"{recipe.lr_total} is not more than lr_warmup, {recipe.lr_warmup}"
        raise UserError(what, f"{place} lr_total", "it counts the warm-up, too")
    if recipe.weight_decay > 0 and train.optimizer != "adam":
        raise UserError(f"is for adam, not for {train.optimizer}", f"{place} weight_decay", "use [train] l2_reg")
    if recipe.weight_decay > 0 and train.l2_reg > 0:
        raise UserError("and [train] l2_reg both decay the weights", f"{place} weight_decay", "set one of them to 0")
    if recipe.label_smoothing > 0 and not is_one_of(train.model_type, SMOOTHED):
        what = f"{train.model_type} has a loss of its own, which is not smoothed"
        raise UserError(what, f"{place} label_smoothing", f"only {' and '.join(SMOOTHED)} can")
    return unused(recipe)


def is_one_of(model_type: str, names: tuple[str, ...]) -> bool:
    """Whether a model is among those of these names, in any case, as the registry finds them."""
    return model_type.lower() in [name.lower() for name in names]


def unused(recipe: RecipeOptions) -> list[str]:
    """A warning for each key that the chosen schedule does not look at."""
    warned = []
    if recipe.lr_warmup and not recipe.lr_schedule:
        warned.append("[model] lr_warmup is not used without an lr_schedule, e.g. constant")
    for name, value in (("lr_total", recipe.lr_total), ("lr_final", recipe.lr_final)):
        if value and recipe.lr_schedule not in FALLING:
            warned.append(f"[model] {name} is used by {' and '.join(FALLING)} only, not by {recipe.lr_schedule}")
    return warned
