"""A transformer that learns to write, one character after the other, with a key-value cache.

It reads sentences made of a few words, whose entropy per letter is known: no loss can be below it,
on average. Then it writes: each new letter computes its own query, key and value only, and the keys
and values of all letters before it are in the cache. Writing is one `iso.scan`, compiled once for
all letters, and all four backends write the same text.

What it stands for: DeePMD-kit has its attention over neighbours once per framework
(`NeighborGatedAttention` in `deepmd/pt/model/descriptor/se_atten.py` for torch, in
`deepmd/dpmodel/descriptor/dpa1.py` for NumPy and JAX, in `deepmd/pd` for Paddle).
"""

from __future__ import annotations

import math

import numpy as np
from pictures import table
from running import main, numbers

import isomorph as iso

WORDS = [
    ["small ", "old ", "grey ", "quick ", "happy ", "sleepy ", "wild ", "clever "],
    ["cat ", "dog ", "fox ", "bird ", "mouse ", "horse ", "fish ", "sheep "],
    ["sees ", "likes ", "finds ", "follows ", "meets ", "hears ", "knows ", "calls "],
    ["the cat. ", "the dog. ", "a fox. ", "a bird. ", "mice. ", "a horse. ", "fish. ", "sheep. "],
]
LETTERS = sorted({letter for words in WORDS for word in words for letter in word} | set("the "))
PLACES = 64  # the longest text


def text(sentences):
    """Sentences "the small cat sees the dog. " of words drawn at random, as numbers of letters."""
    drawn = iso.random.randint(iso.random.key(0), (sentences, len(WORDS)), 0, 8)
    lines = ["the " + "".join(words[i] for words, i in zip(WORDS, row)) for row in drawn]
    return np.array([LETTERS.index(letter) for letter in "".join(lines)])


def entropy():
    """Nats per letter of such a text: four choices of eight, over the mean length of a sentence."""
    length = 4 + sum(len(word) for words in WORDS for word in words) / 8
    return len(WORDS) * math.log(8) / length


class Block(iso.Module):
    """Attention, then two linear layers. With a cache, x is one letter, and `place` its place."""

    def __init__(self, width, heads):
        self.heads = heads
        self.norm1, self.norm2 = iso.LayerNorm(width), iso.LayerNorm(width)
        self.inward, self.outward = iso.Linear(width, 3 * width), iso.Linear(width, width)
        self.widen, self.narrow = iso.Linear(width, 4 * width), iso.Linear(4 * width, width)

    def forward(self, x, cache=None, place=None):
        xp = iso.namespace(x)
        three = xp.reshape(self.inward(self.norm1(x)), (*x.shape[:-1], 3, self.heads, -1))
        query, key, value = (xp.moveaxis(a, -2, -3) for a in xp.unstack(three, axis=-3))
        places = None if cache is None else xp.reshape(place, (1,))
        query, key = (iso.rotary_embedding(a, positions=places) for a in (query, key))
        if cache is None:
            seen = iso.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            here = (slice(None), iso.span(place, 1))
            cache = iso.at(cache[0])[here].set(key), iso.at(cache[1])[here].set(value)
            known = (xp.arange(PLACES, dtype=place.dtype) <= place)[None, :]
            seen = iso.scaled_dot_product_attention(query, *cache, mask=known)
        x = x + self.outward(xp.reshape(xp.moveaxis(seen, -3, -2), x.shape))
        return x + self.narrow(iso.gelu(self.widen(self.norm2(x)))), cache


class Writer(iso.Module):
    """Logits of the next letter: at each place of a text [..., length], or after one letter."""

    def __init__(self, blocks, width, heads=2):
        self.width, self.heads = width, heads
        self.letters = iso.Embedding(len(LETTERS), width)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.norm, self.head = iso.LayerNorm(width), iso.Linear(width, len(LETTERS))

    def forward(self, letters, caches=None, place=None):
        x, after = self.letters(letters), []
        for block, cache in zip(self.blocks, caches or [None] * len(self.blocks)):
            x, cache = block(x, cache, place)
            after.append(cache)
        return self.head(self.norm(x)), after

    def empty(self):
        """Caches that hold no letter yet."""
        xp = iso.namespace(self.head.w)
        none = xp.zeros((self.heads, PLACES, self.width // self.heads), dtype=self.head.w.dtype)
        return [(none, none) for _ in self.blocks]


def loss(model, letters):
    return iso.cross_entropy(model(letters[:, :-1])[0], letters[:, 1:])


def write(model, given, keys):
    """A text of PLACES letters that begins with `given`, and the logits at each place. Where
    `given` [PLACES] is −1, a letter is drawn with the key of its place.
    """
    xp = iso.namespace(given)

    def step(carry, now):
        caches, guess = carry
        place, letter, key = now
        letter = xp.where(letter < 0, guess, letter)
        logits, caches = model(letter[None], caches, place)
        guess = xp.astype(iso.random.categorical(key, logits[0]), given.dtype)
        return (caches, guess), (letter, logits[0])

    rows = xp.arange(PLACES, dtype=given.dtype), given, keys
    return iso.scan(step, (model.empty(), xp.zeros_like(given[0])), rows)[1]


def run(backend, quick=False, compiled=True):
    sentences, blocks, width, size, steps = (20, 1, 8, 4, 10) if quick else (3000, 2, 32, 10, 500)
    letters = text(sentences)
    starts = np.arange(0, len(letters) - PLACES, 16)
    data = iso.convert(np.stack([letters[i : i + PLACES + 1] for i in starts]), backend)
    begun = np.full(PLACES, -1)
    begun[:4] = [LETTERS.index(letter) for letter in "the "]
    with iso.use_backend(backend, dtype="float64"), iso.use_key(0):
        model = Writer(blocks, width)
        keys = iso.random.split(iso.random.key(1), PLACES)
    rate = iso.optimizers.warmup_cosine(0.01, steps // 10, steps)
    done = iso.fit(
        model, (data,), loss, iso.optimizers.adamw(rate), 100, steps=steps,
        batch_size=size, compiled=compiled, progress=False,
    )  # fmt: skip
    jit = iso.jit if compiled else lambda func: func
    written, logits = jit(write)(done.model, iso.convert(begun, backend), keys)
    whole = done.model(written[None, :])[0][0, ...]
    result = numbers({"logits": logits, "whole": whole})
    line = "".join(LETTERS[i] for i in numbers(written))
    found = {"loss": float(np.mean(done.losses[-20:])), "entropy": entropy()}
    found |= {"known words": known(line)}
    return {"found": found, "losses": np.array(done.losses), "text": line, **result}


def known(line):
    """The part of the words that are words of the sentences; the last may be cut off."""
    there = {word for words in WORDS for some in words for word in some.split()} | {"the"}
    words = line.split(" ")[:-1]
    return sum(word in there for word in words) / max(len(words), 1)


def shown(result):
    rows = [[name, f"{value:.3f}"] for name, value in result["found"].items()]
    return f"{table(['', 'found'], rows)}\n\n{result['text']}\n"


if __name__ == "__main__":
    main(__doc__, run, shown, "characters.txt")
