"""Run all cells of the notebooks and store their outputs: `make notebook`.

This needs no jupyter: a notebook is a list of cells in JSON. A cell's output is what it prints, the value of its last
expression, and its figures.
"""

import ast
import base64
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

NOTEBOOKS = ("tutorial", "marian")


def path_of(name: str) -> Path:
    """Return a notebook's file."""
    return Path(__file__).with_name(f"{name}.ipynb")


def read(name: str) -> dict[str, Any]:
    """Read a notebook."""
    return json.loads(path_of(name).read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Run a cell; return what it printed, and the value of its last statement if that is an expression."""
    tree, value, printed = ast.parse(source), None, io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    return printed.getvalue(), value


def figures() -> list[str]:
    """Return matplotlib's open figures as PNG in base64, and close them."""
    from matplotlib import pyplot

    found = []
    for number in pyplot.get_fignums():
        stream = io.BytesIO()
        pyplot.figure(number).savefig(stream, format="png", dpi=80, bbox_inches="tight", metadata={"Software": None})
        found.append(base64.b64encode(stream.getvalue()).decode())
    pyplot.close("all")
    return found


def outputs_of(printed: str, value: Any, pictures: list[str], number: int) -> list[dict[str, Any]]:
    """Return a cell's outputs in the notebook format."""
    outputs: list[dict[str, Any]] = []
    if printed:
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.splitlines(keepends=True)})
    for picture in pictures:
        data = {"image/png": picture, "text/plain": ["<Figure>"]}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
    if value is not None and not pictures:
        data = {"text/plain": repr(value).splitlines(keepends=True)}
        outputs.append({"output_type": "execute_result", "execution_count": number, "data": data, "metadata": {}})
    return outputs


def execute(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run all cells in order, in a folder, and set their outputs."""
    import matplotlib

    matplotlib.use("agg")
    names: dict[str, Any] = {"__name__": "__main__"}
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    with contextlib.chdir(folder):
        for number, cell in enumerate(code, 1):
            printed, value = run_cell("".join(cell["source"]), names)
            cell["outputs"], cell["execution_count"] = outputs_of(printed, value, figures(), number), number
    return notebook


def as_markdown(notebook: dict[str, Any], pictures: Path) -> str:
    """Return a notebook as a page for the site; write its figures as files in a folder."""
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "image/png" in data:
                name = f"tutorial-{len(blocks)}.png"
                (pictures / name).write_bytes(base64.b64decode(data["image/png"]))
                blocks.append(f"![A figure]({name})")
            else:
                text = "".join(output.get("text") or data["text/plain"]).rstrip()
                blocks.append(f"```text\n{text}\n```")
    return "\n\n".join(blocks) + "\n"


def main() -> None:
    """Run each notebook in an empty folder, and store it."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in sys.argv[1:] or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            done = execute(read(name), Path(folder))
        path_of(name).write_text(json.dumps(done, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        sys.stdout.write(f"{path_of(name)}\n")


if __name__ == "__main__":
    main()
