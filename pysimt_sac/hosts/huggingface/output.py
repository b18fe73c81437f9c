"""The output layer of a model of transformers, taken out of its forward pass.

So scores of 256,000 words are computed for the positions and words that are needed, in slices, by `network.output`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor


class OutputLayer(NamedTuple):
    """A linear layer as `network.output` expects it, with the rows of the model, in the tokenizer's order."""

    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, model: Any) -> "OutputLayer":
        """Return the output layer of a model, with the constant bias that some add to it."""
        layer = model.get_output_embeddings()
        bias_V = layer.weight.new_zeros(len(layer.weight)) if layer.bias is None else layer.bias
        constant = getattr(model, "final_logits_bias", None)
        return cls(layer.weight, bias_V if constant is None else bias_V + constant.view(-1).to(bias_V))

    def __call__(self, x_NE: Tensor) -> Tensor:
        """Return all scores (N, V)."""
        return x_NE @ self.weight.t() + self.bias


@contextmanager
def output_of(model: Any, select: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Let the output layer see only what `select` returns of its input (N, T, E) inside the block."""
    layer = model.get_output_embeddings()
    hook = layer.register_forward_pre_hook(lambda _, inputs: (select(inputs[0]),))
    try:
        yield
    finally:
        hook.remove()
