"""Images for the toy: random features of every sentence's image, in the files of pysimt's two kinds."""

import numpy as np


def write_images(toy):
    """The files by kind and split: three channels of two by two places, or five regions with four numbers each."""
    rng, files = np.random.default_rng(1), {"Numpy": {}, "ObjectDetections": {}}
    for split in ("train", "val", "test"):
        size = len((toy.folder / f"{split}.src").read_text().splitlines())
        channels, regions = (rng.standard_normal((size, *shape), dtype=np.float32) for shape in ((3, 2, 2), (5, 4)))
        files["Numpy"][split], files["ObjectDetections"][split] = (
            toy.folder / f"{split}.{end}" for end in ("npy", "npz")
        )
        np.save(files["Numpy"][split], channels)
        np.savez(files["ObjectDetections"][split], order=np.arange(size), features=regions)
    return files


def add_images(toy, kind):
    """Give the toy's configuration images of a kind as a second input."""
    text = toy.config.read_text().replace("src:Text ->", f"src:Text, image:{kind} ->")
    for split, path in write_images(toy)[kind].items():
        text = text.replace(f"{split}_set: {{", f"{split}_set: {{'image': '{path}', ")
    toy.config.write_text(text)
