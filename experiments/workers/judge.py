"""A worker for `reward: remote` and `--worker`: a language model judges, behind an OpenAI-compatible URL.

    remote_worker: python experiments/workers/judge.py --url http://localhost:8000/v1 --model NAME

It asks for a number from 0 to 100 for every translation, several at a time, and writes it divided by 100. A key, if
the server needs one, is taken from the environment variable JUDGE_KEY.
"""

import argparse
import json
import os
import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor

QUESTION = """Rate this translation from 0 (nonsense) to 100 (perfect in meaning and style). Answer with a number.

Source: {source}
Reference: {reference}
Translation: {hypothesis}"""


def judge(args: argparse.Namespace, pair: dict[str, str]) -> float:
    """Return the judgement of one translation, between 0 and 1."""
    message = {"role": "user", "content": QUESTION.format(**pair)}
    body = {"model": args.model, "messages": [message], "temperature": 0, "max_tokens": 8}
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get("JUDGE_KEY"):
        headers["Authorization"] = f"Bearer {key}"
    url = f"{args.url.rstrip('/')}/chat/completions"
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=args.timeout) as response:
        text = json.load(response)["choices"][0]["message"]["content"]
    number = re.search(r"\d+(\.\d+)?", text)
    if number is None:
        raise ValueError(f"the judge answered {text!r}, without a number")
    return min(float(number[0]), 100.0) / 100


def main() -> None:
    """Read batches of JSON lines, each ended by an empty line; write one score per line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True, help="up to /v1")
    parser.add_argument("--model", required=True)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--timeout", type=float, default=60)
    args = parser.parse_args()
    batch = []
    with ThreadPoolExecutor(args.at_once) as pool:
        for line in sys.stdin:
            if line.strip():
                batch.append(json.loads(line))
                continue
            for score in pool.map(lambda pair: judge(args, pair), batch):
                print(f"{score:.4f}")
            sys.stdout.flush()
            batch = []


if __name__ == "__main__":
    main()
