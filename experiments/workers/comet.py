"""A worker for `reward: remote` and `--worker`: COMET, or COMET-QE, which ignores the reference.

COMET needs other versions of packages than pysimt_sac, hence an environment of its own:

    python3 -m venv comet && comet/bin/pip install unbabel-comet
    remote_worker: comet/bin/python experiments/workers/comet.py --model Unbabel/wmt22-comet-da
    remote_worker: comet/bin/python experiments/workers/comet.py --model Unbabel/wmt22-cometkiwi-da
"""

import argparse
import contextlib
import json
import sys


def main() -> None:
    """Read batches of JSON lines, each ended by an empty line; write one score per line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default="Unbabel/wmt22-comet-da", help="a name on the model hub, or a .ckpt file")
    parser.add_argument("--gpus", type=int, default=0)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for scores only
        import comet

        path = args.model if args.model.endswith(".ckpt") else comet.download_model(args.model)
        model = comet.load_from_checkpoint(path)
    batch = []
    for line in sys.stdin:
        if line.strip():
            pair = json.loads(line)
            batch.append({"src": pair["source"], "mt": pair["hypothesis"], "ref": pair["reference"]})
            continue
        with contextlib.redirect_stdout(sys.stderr):
            found = model.predict(batch, batch_size=args.batch_size, gpus=args.gpus, progress_bar=False)
        print("\n".join(f"{score:.6f}" for score in found.scores), flush=True)
        batch = []


if __name__ == "__main__":
    main()
