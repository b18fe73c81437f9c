"""Make a small model of Marian's shape for a corpus: a configuration and a tokenizer, without weights.

    python experiments/small_marian.py train.en train.de --out marian

A configuration with `hf_model: ./marian` trains it from nothing.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

SPECIAL = ["</s>", "<unk>"]  # Marian's first ids; `<pad>` is the last


def make(texts: Sequence[Path], out: Path, pieces: int = 600, size: int = 96, layers: int = 2, heads: int = 4) -> None:
    """Train a SentencePiece model on both sides, and write the folder that transformers reads.

    size: of the states; layers: of encoder and decoder, each.
    """
    import sentencepiece
    import transformers

    out.mkdir(parents=True, exist_ok=True)
    sentencepiece.SentencePieceTrainer.train(
        input=",".join(map(str, texts)),
        model_prefix=str(out / "source"),
        vocab_size=pieces,
        model_type="bpe",
        bos_id=-1,
        minloglevel=2,
    )
    (out / "source.model").rename(out / "source.spm")
    (out / "target.spm").write_bytes((out / "source.spm").read_bytes())
    (out / "source.vocab").unlink()
    model = sentencepiece.SentencePieceProcessor(model_file=str(out / "source.spm"))
    learned = [piece for piece in map(model.id_to_piece, range(len(model))) if piece not in SPECIAL]
    tokens = [*SPECIAL, *learned, "<pad>"]
    vocab = out / "vocab.json"
    vocab.write_text(json.dumps({token: number for number, token in enumerate(tokens)}), encoding="utf-8")
    transformers.MarianTokenizer(str(out / "source.spm"), str(out / "target.spm"), str(vocab)).save_pretrained(out)
    sizes = {"d_model": size, "encoder_ffn_dim": 2 * size, "decoder_ffn_dim": 2 * size, "max_position_embeddings": 256}
    sizes |= {f"{side}_layers": layers for side in ("encoder", "decoder")}
    sizes |= {f"{side}_attention_heads": heads for side in ("encoder", "decoder")}
    ids = {"pad_token_id": len(tokens) - 1, "decoder_start_token_id": len(tokens) - 1, "eos_token_id": 0}
    more = {"bos_token_id": None, "forced_eos_token_id": None, "scale_embedding": True, "dropout": 0.1}
    config = transformers.MarianConfig(vocab_size=len(tokens), decoder_vocab_size=len(tokens), **sizes, **ids, **more)
    config.architectures = ["MarianMTModel"]
    config.save_pretrained(out)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Make a small model of Marian's shape, without weights.")
    parser.add_argument("texts", nargs="+", type=Path, help="training text of both sides")
    parser.add_argument("--out", required=True, type=Path, help="the folder to write")
    parser.add_argument("--pieces", type=int, default=600, help="size of the vocabulary (default: 600)")
    parser.add_argument("--size", type=int, default=96, help="size of the states (default: 96)")
    args = parser.parse_args()
    make(args.texts, args.out, args.pieces, args.size)


if __name__ == "__main__":
    main()
