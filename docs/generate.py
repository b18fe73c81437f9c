"""Write the README's tables of options anew from their declarations (`make docs`)."""

import re
from pathlib import Path

from pysimt_sac import models  # noqa: F401 - registers the models
from pysimt_sac.engine.config.options import ModelOptions, RecipeOptions, TrainOptions, options_table
from pysimt_sac.engine.config.registry import MODELS

README = Path(__file__).parents[1] / "README.md"
MARKS = "<!-- options:begin -->\n", "<!-- options:end -->"


def tables() -> str:
    """`[train]`, `[model]`, and what some models add to it."""
    parts = [
        f"### `[train]`\n\n{options_table(TrainOptions)}",
        f"### `[model]`\n\n{options_table(ModelOptions)}",
        f"### `[model]`, how to train (embedded engine only)\n\n{options_table(RecipeOptions)}",
    ]
    models_of: dict[type, list[str]] = {}
    for name, model in MODELS.items.items():
        for cls in (cls for cls in model.option_classes if cls is not ModelOptions):
            models_of.setdefault(cls, []).append(f"`{name}`")
    for cls, names in models_of.items():
        parts.append(f"### `[model]` of {', '.join(names)}\n\n{options_table(cls)}")
    return "\n" + "\n\n".join(parts) + "\n\n"


def with_tables(text: str) -> str:
    """A README's text with fresh tables between the marks."""
    begin, end = MARKS
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}{tables()}{end}", text, flags=re.DOTALL)


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text()))
