"""`RLModel`: what every reinforcement-learning model shares, on either host.

It derives from the host's `SimultaneousNMT`, so that loaders, decoder, search and loop are the host's. An algorithm is
a subclass in a file of its own: it says what the loss of a training batch is (`training_loss`), or has a learner that
does (`make_learner`). The learner is a plain object: nothing of it is in the model's weights, nor seen by the host.
"""

import functools
import logging
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import torch
from torch import Tensor

from pysimt_sac import host
from pysimt_sac.engine.config.options import ModelOptions, TrainOptions, defaults, read_section
from pysimt_sac.engine.data.filters import FilterChain
from pysimt_sac.engine.metrics import bleu
from pysimt_sac.engine.network.nmt import real_positions
from pysimt_sac.engine.network.output import linear_cross_entropy, linear_rows
from pysimt_sac.rewards import Translations
from pysimt_sac.rl import losses
from pysimt_sac.rl.learner import Learner
from pysimt_sac.rl.losses import Support
from pysimt_sac.rl.options import RLOptions
from pysimt_sac.rl.watch import Watch

if TYPE_CHECKING:
    from pysimt_sac.engine.network.layers import States
    from pysimt_sac.engine.network.nmt import SimultaneousNMT as HostModel
else:
    HostModel = host.SimultaneousNMT

T = TypeVar("T")
NO_ACTOR = (
    "Warning: there is no pretrained_file, so that the actor begins with random weights, and what it samples earns "
    "nothing to learn from; train one first (pysimt train -C experiments/mle.conf) and name its folder there"
)


class RLModel(HostModel):
    """A translation model whose training loss is its own; validation and translation are the host's."""

    option_classes: ClassVar[tuple[type, ...]] = (ModelOptions, RLOptions)
    learner: Learner | None = None
    _stage = ""
    _first_update = 0  # of the actor's; before it only others learn

    def set_defaults(self) -> None:
        """Add the options that the host does not know."""
        super().set_defaults()
        for cls in self.option_classes:
            for name, value in defaults(cls).items():
                self.defaults.setdefault(name, value)

    def read_options(self, cls: type[T]) -> T:
        """Some of the options in `[model]`."""
        return read_section(cls, self.opts.model, f"{self.opts.filename} [model]")

    def make_learner(self) -> Learner | None:
        """The algorithm's learner, if it has one."""
        return None

    def register_tensorboard(self, handle: Any) -> None:
        """The host calls this when training begins, and never to translate: now the learner is needed."""
        super().register_tensorboard(handle)
        self.rl_options = self.read_options(RLOptions)
        train = read_section(TrainOptions, self.opts.train, f"{self.opts.filename} [train]")
        self.filters = FilterChain(train.eval_filters)
        self.watch = Watch()
        self.learner = self.make_learner()
        if self.learner and not self.opts.train.get("pretrained_file"):
            self.say(NO_ACTOR)

    def forward(self, batch: Any, uctr: int = 0, ectr: int = 0) -> dict[str, Any]:
        """In training, the algorithm's loss; in validation, the maximum-likelihood loss."""
        if not self.training:
            return super().forward(batch)
        return self.training_loss(batch, uctr, ectr)

    def training_loss(self, batch: Any, update: int, epoch: int) -> dict[str, Any]:
        """The loss of a batch, summed, as `{'loss': tensor, 'n_items': words}`: the learner's, unless overridden."""
        if self.learner is None:
            raise TypeError(f"{type(self).__name__} has neither a learner nor a training loss of its own")
        self.announce(self.learner.stage(epoch))
        loss = self.learner.loss(batch, update, epoch)
        if update % self.rl_options.health_freq == 0:
            norms = {f"gradient_{name}": self.gradient_norm(term) for name, term in loss.terms.items()}
            self.report({**self.learner.health(update), **norms, **self.scores(batch)}, update)
        if not loss.terms:  # a zero that is tied to no weight: the host's optimiser has nothing to do
            return {"loss": torch.zeros((), device=batch[self.tl].device, requires_grad=True), "n_items": loss.n_items}
        self._first_update = self._first_update or update
        return {"loss": sum(loss.terms.values()) * loss.n_items, "n_items": loss.n_items}

    def lr_factor(self, update: int) -> float:
        """By what the host shall multiply the learning rate of an update: the warm-up, once the actor learns."""
        warmup, learnt = self.rl_options.actor_warmup, update + 1 - (self._first_update or 1)
        return min(1.0, learnt / warmup) if warmup else 1.0

    # Telling

    def say(self, message: str) -> None:
        """A line for the host's log."""
        say = getattr(self.tboard, "say", None) or logging.getLogger("pysimt").info
        say(message)

    def announce(self, stage: str) -> None:
        """When what learns changes, say so, and what there is to say about it."""
        if stage != self._stage:
            self._stage = stage
            self.say(f"Now learning: {stage}")
            for line in self.learner.enter(stage) if self.learner else ():
                self.say(line)

    def report(self, figures: dict[str, float], update: int) -> None:
        """A line of the log and a point of each curve; and warnings, if there is something wrong."""
        self.say("  ".join(f"{name} {value:.3g}" for name, value in figures.items()))
        for name, value in figures.items():
            self.tboard.log_scalar(f"rl_{name}", value, update)
        for warning in self.watch.look(figures):
            self.say(f"Warning: {warning}. The best checkpoint so far is kept.")

    def gradient_norm(self, term: Tensor) -> float:
        """The norm of what one term of the loss alone would do to the actor."""
        weights = [weight for weight in self.parameters() if weight.requires_grad]
        gradients = torch.autograd.grad(term, weights, retain_graph=True, allow_unused=True)
        return float(torch.nn.utils.get_total_norm([gradient for gradient in gradients if gradient is not None]))

    def scores(self, batch: Any) -> dict[str, float]:
        """BLEU of the batch's sampled and of its greedy translations, filtered as in validation."""
        if self.learner is None or self.learner.player.last is None:
            return {}
        greedy = self.learner.player.roll_out(self, batch, generator=None)
        found = {
            "sampled_bleu": self.learner.player.last,
            "greedy_bleu": Translations.from_ids(greedy.words_TB, batch[self.tl], self.trg_vocab_tokens),
        }
        return {name: self.word_bleu(translations) for name, translations in found.items()}

    def word_bleu(self, translations: Translations) -> float:
        """Corpus BLEU of some translations as people read them."""
        texts = (translations.hypotheses, translations.references)
        hypotheses, references = (self.filters([" ".join(words) for words in text]) for text in texts)
        return bleu(hypotheses, [references])

    # Resuming

    def training_state(self) -> dict[str, Any]:
        """The learner's state."""
        learner = {"learner": self.learner.state_dict()} if self.learner else {}
        own = {"stage": self._stage, "first_update": self._first_update, "watch": self.watch.state_dict()}
        return {**super().training_state(), **own, **learner}

    def load_training_state(self, state: dict[str, Any]) -> None:
        """Take back what `training_state` gave."""
        super().load_training_state(state)
        self._stage, self._first_update = state["stage"], state["first_update"]
        self.watch.load_state_dict(state["watch"])
        if self.learner:
            self.learner.load_state_dict(state["learner"])

    # Data

    @functools.cached_property
    def trg_vocab_tokens(self) -> list[str]:
        """The target words by their numbers."""
        return [str(self.trg_vocab[number]) for number in range(len(self.trg_vocab))]

    def host_lengths(self, batch: Any, side: str) -> Tensor:
        """The lengths of a side's sentences, in host memory."""
        known = getattr(batch, "lengths", {}).get(side)
        lengths_B: Tensor = batch[side].ne(0).sum(0).cpu() if known is None else known
        return lengths_B

    def validation_batches(self, n_sentences: int, batch_size: int = 32) -> Iterator[Any]:
        """About so many sentence pairs from all over the validation set."""
        corpus: Any = self.load_data("val", batch_size, mode="eval")
        batches = list(corpus.loader() if hasattr(corpus, "loader") else corpus)
        wanted = -(-n_sentences // batch_size)
        for batch in islice(batches, 0, None, max(1, len(batches) // wanted)):
            batch.device(next(self.parameters()).device)
            yield batch

    # The network

    def states_of(self, batch: Any) -> "States":
        """The encoded source."""
        self.cache_enc_states(batch)
        return self.get_enc_state_dict()

    def policy(
        self, states: "States", words_TB: Tensor, lengths_B: Tensor, taken: Tensor, k: int, least: float = 0.0
    ) -> tuple[Tensor, Support | None]:
        """log pi (N, A) at every real step of some translations, over k likeliest words and the taken one.

        k = 0: over all words. least: see `losses.find_support`. With k words the gradient goes through the output
        layer's rows of those words alone.
        """
        if k == 0:
            return losses.policy(self.log_probs(states, words_TB, lengths_B)), None
        if not hasattr(self.dec, "unroll"):
            log_p_NV = self.log_probs(states, words_TB, lengths_B)
            support = losses.find_support(log_p_NV, taken, k, least)
            return losses.restricted_policy(log_p_NV, support), support
        readout_NE, _ = self.readouts(states, words_TB, lengths_B)
        with torch.no_grad():
            support = losses.find_support(self.dec.out2prob(readout_NE), taken, k, least)
        return losses.policy_on_support(linear_rows(self.dec.out2prob, readout_NE, support.words_NK), support), support

    def log_probs(self, states: "States", ids_TB: Tensor, lengths_B: Tensor | None = None) -> Tensor:
        """Log-probabilities (N, V) of the next word at every real step of `<bos> ... <eos>`, by step, then by sentence.

        The engine's decoder takes all steps in one pass; pysimt's is asked for one after the other.
        """
        if hasattr(self.dec, "unroll"):
            readout_NE, _ = self.readouts(states, ids_TB, lengths_B)
            return self.dec.out2prob(readout_NE).log_softmax(-1)  # type: ignore[no-any-return]
        state, steps = self.dec.f_init(states), []  # type: ignore[func-returns-value]
        for ids_B in ids_TB[:-1]:
            log_p_BV, state = self.dec.f_next(states, self.dec.get_emb(ids_B), state)
            steps.append(log_p_BV)
        return torch.cat(steps).index_select(0, real_positions(ids_TB, lengths_B))

    def nll(self, states: "States", ids_TB: Tensor) -> Tensor:
        """Minus the mean log-probability of the words of `<bos> ... <eos>`."""
        if hasattr(self.dec, "unroll"):
            readout_NE, targets_N = self.readouts(states, ids_TB)
            return linear_cross_entropy(self.dec.out2prob, readout_NE, targets_N) / len(targets_N)
        targets_N = ids_TB[1:].flatten().index_select(0, real_positions(ids_TB))
        return -self.log_probs(states, ids_TB).gather(1, targets_N.unsqueeze(1)).mean()
