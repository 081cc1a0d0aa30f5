"""The data sets: found, checked by their hashes, and read; or stand-ins of the same shape from a seed.

A file is read once, hashed, and used only when the hash is the official one: a pickle is opened after that.

Standard library and Python 3.7 syntax only: arrays are bytes and `array.array`.
"""

import array
import collections
import hashlib
import json
import os
import pickle
import random

from parts.trial import Failed

TABLE = os.path.join(os.path.dirname(__file__), "..", "..", "datasets.json")
"""The SHA-256 of each file as its authors distribute it, by which the harness fetches it too."""
WIKITEXT_2_TOKENS = (2088628, 217646, 245569)
WIKITEXT_2_TYPES = 33278
TOKENS_PER_LINE = 57
SEED = 0

Images = collections.namedtuple("Images", "pixels labels")
"""`pixels` is bytes, image after image, each (channels, height, width); `labels` is a list of integers."""

ImageSet = collections.namedtuple("ImageSet", "name train test classes shape sha256")
"""`shape` is (channels, height, width) of one image; `sha256` is None where the images are generated."""

Corpus = collections.namedtuple("Corpus", "name train valid test types sha256")
"""Token numbers as `array('i')`; `types` is the size of the vocabulary."""


def facts(found, train_items, valid_items):
    """Return what a measurement says of a data set, and of how much of it a trial has."""
    facts = {"name": found.name, "sha256": found.sha256}
    return dict(facts, train_items=train_items, valid_items=valid_items)


def cifar_100(folder, source):
    """Return CIFAR-100 with its fine labels, 50,000 and 10,000 images of 3 x 32 x 32."""
    shape = (3, 32, 32)
    if source == "generated":
        train, test = _generated_images((50000, 10000), 100, shape)
        return ImageSet("cifar-100", train, test, 100, shape, None)
    splits = [pickle.loads(content, encoding="bytes") for content in _checked(folder, "cifar-100")]
    train, test = [Images(split[b"data"].tobytes(), split[b"fine_labels"]) for split in splits]
    return ImageSet("cifar-100", train, test, 100, shape, _hash_of_hashes("cifar-100"))


def cifar_10(folder, source):
    """Return CIFAR-10, 50,000 and 10,000 images of 3 x 32 x 32."""
    shape = (3, 32, 32)
    if source == "generated":
        train, test = _generated_images((50000, 10000), 10, shape)
        return ImageSet("cifar-10", train, test, 10, shape, None)
    batches = [pickle.loads(content, encoding="bytes") for content in _checked(folder, "cifar-10")]
    pixels = [batch[b"data"].tobytes() for batch in batches]
    labels = [batch[b"labels"] for batch in batches]
    train = Images(b"".join(pixels[:5]), [label for batch in labels[:5] for label in batch])
    return ImageSet("cifar-10", train, Images(pixels[5], labels[5]), 10, shape, _hash_of_hashes("cifar-10"))


def mnist(folder, source):
    """Return MNIST, 60,000 and 10,000 images of 1 x 28 x 28."""
    shape = (1, 28, 28)
    if source == "generated":
        train, test = _generated_images((60000, 10000), 10, shape)
        return ImageSet("mnist", train, test, 10, shape, None)
    content = list(_checked(folder, "mnist"))
    train, test = [Images(content[at][16:], list(content[at + 1][8:])) for at in (0, 2)]
    return ImageSet("mnist", train, test, 10, shape, _hash_of_hashes("mnist"))


def wikitext_2(folder, source):
    """Return WikiText-2 as words: split at white space, one <eos> a line, numbered as they first appear."""
    if source == "generated":
        return _generated_corpus()
    numbers = {}
    splits = [_tokens(content.decode("utf-8"), numbers) for content in _checked(folder, "wikitext-2")]
    counts = tuple(len(split) for split in splits)
    if counts != WIKITEXT_2_TOKENS or len(numbers) != WIKITEXT_2_TYPES:
        raise Failed("bad-data", "WikiText-2 gave %s tokens of %d types" % (counts, len(numbers)))
    return Corpus("wikitext-2", splits[0], splits[1], splits[2], len(numbers), _hash_of_hashes("wikitext-2"))


def weights(folder, name):
    """Return content and SHA-256 of `weights/<name>`, whose name has the first eight digits of its hash."""
    content = _content(folder, "weights/" + name)
    digest = hashlib.sha256(content).hexdigest()
    if not digest.startswith(name.rsplit("-", 1)[-1].split(".")[0]):
        message = "'weights/%s' is not what its name says: its SHA-256 begins with %s"
        raise Failed("bad-data", message % (name, digest[:8]))
    return content, digest


def _hashes(name):
    """Return the SHA-256 of each file of a data set, in the order in which they are read."""
    with open(TABLE) as file:
        files = json.load(file)[name]["files"]
    return [(path, sha256) for path, (_, sha256) in files.items()]


def _checked(folder, data):
    for name, official in _hashes(data):
        content = _content(folder, name)
        digest = hashlib.sha256(content).hexdigest()
        if digest != official:
            message = "'%s' is not the official file: its SHA-256 is %s where %s is asked"
            raise Failed("bad-data", message % (name, digest, official))
        yield content


def _content(folder, name):
    path = os.path.join(folder, *name.split("/"))
    if os.path.exists(path):
        with open(path, "rb") as file:
            return file.read()
    raise Failed("bad-data", "'%s' is not in the data folder; fetch it first" % name)


def _hash_of_hashes(data):
    lines = "".join("%s %s\n" % pair for pair in sorted(_hashes(data)))
    return hashlib.sha256(lines.encode("ascii")).hexdigest()


def _tokens(text, numbers):
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    tokens = array.array("i")
    for line in lines:
        words = line.split()
        words.append("<eos>")
        tokens.extend([numbers.setdefault(word, len(numbers)) for word in words])
    return tokens


def _generated_images(counts, classes, shape):
    """Each class is a pattern of coloured blocks; each image is its pattern under noise of its own."""
    rng = random.Random(SEED)
    channels, height, width = shape
    size = channels * height * width
    # Noise of 0 to 63 on a pattern of 0 to 191, byte by byte in one long integer.
    noise = int.from_bytes(b"\x3f" * size, "little")
    patterns = [int.from_bytes(_blocks(rng, shape), "little") for _ in range(classes)]
    splits = []
    for count in counts:
        labels = [number % classes for number in range(count)]
        rng.shuffle(labels)
        images = ((rng.getrandbits(8 * size) & noise) + patterns[label] for label in labels)
        splits.append(Images(b"".join(image.to_bytes(size, "little") for image in images), labels))
    return splits


def _blocks(rng, shape):
    channels, height, width = shape
    pattern = bytearray()
    for _ in range(channels):
        colours = [[rng.randrange(192) for _ in range(0, width, 4)] for _ in range(0, height, 4)]
        pattern.extend(colours[row // 4][column // 4] for row in range(height) for column in range(width))
    return bytes(pattern)


def _generated_corpus():
    """Words by Zipf's law; every other word follows from the one before it, three times in four."""
    rng = random.Random(SEED)
    types = WIKITEXT_2_TYPES
    shares = [0.0]
    for rank in range(1, types):
        shares.append(shares[-1] + 1.0 / rank)
    follower = list(range(1, types))
    rng.shuffle(follower)
    splits = []
    for count in WIKITEXT_2_TOKENS:
        # Word 0 ends a line, so the lines are as long as the real ones on average.
        words = array.array("i", rng.choices(range(1, types), cum_weights=shares[1:], k=count))
        for at in range(1, count, 2):
            if rng.random() < 0.75:
                words[at] = follower[words[at - 1] - 1]
        for at in range(TOKENS_PER_LINE - 1, count, TOKENS_PER_LINE):
            words[at] = 0
        splits.append(words)
    return Corpus("wikitext-2", splits[0], splits[1], splits[2], types, None)
