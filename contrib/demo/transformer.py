"""Inference with a decoder-only transformer in plain numpy: prompt, key-value cache, one token after the other."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from loop import loop

WIDTH, HEADS, LAYERS, VOCABULARY, LONGEST, PROMPT = 128, 4, 4, 2000, 128, 32
rng = np.random.default_rng(1)


def matrix(rows, columns):
    return (rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)


def layer_norm(x):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + 1e-5)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))


class Attention:
    def __init__(self):
        self.qkv, self.out = matrix(WIDTH, 3 * WIDTH), matrix(WIDTH, WIDTH)
        self.keys = np.zeros((HEADS, LONGEST, WIDTH // HEADS), np.float32)
        self.values = np.zeros_like(self.keys)

    def heads(self, x):
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    def __call__(self, x, position):
        query, key, value = (self.heads(part) for part in np.split(x @ self.qkv, 3, axis=-1))
        end = position + len(x)
        self.keys[:, position:end], self.values[:, position:end] = key, value
        scores = query @ self.keys[:, :end].transpose(0, 2, 1) / np.sqrt(WIDTH // HEADS)
        if len(x) > 1:
            scores = np.where(np.arange(end) <= np.arange(position, end)[:, None], scores, -1e9)
        return (softmax(scores) @ self.values[:, :end]).transpose(1, 0, 2).reshape(len(x), WIDTH) @ self.out


class Block:
    def __init__(self):
        self.attention, self.up, self.down = Attention(), matrix(WIDTH, 4 * WIDTH), matrix(4 * WIDTH, WIDTH)

    def __call__(self, x, position):
        x = x + self.attention(layer_norm(x), position)
        return x + gelu(layer_norm(x) @ self.up) @ self.down


class Model:
    def __init__(self):
        self.embedding, self.head = matrix(VOCABULARY, WIDTH), matrix(WIDTH, VOCABULARY)
        self.blocks = [Block() for _ in range(LAYERS)]

    def forward(self, tokens, position):
        x = self.embedding[tokens]
        for block in self.blocks:
            x = block(x, position)
        return layer_norm(x[-1]) @ self.head

    def sample(self, logits, k=40):
        top = np.argpartition(logits, -k)[-k:]
        return int(rng.choice(top, p=softmax(logits[top].astype(np.float64))))


def generate(model, length=48):
    """One request."""
    token = model.sample(model.forward(rng.integers(0, VOCABULARY, PROMPT), 0))
    for i in range(length - 1):
        token = model.sample(model.forward(np.array([token]), PROMPT + i))
    return token


if __name__ == "__main__":
    model = Model()
    loop("transformer", lambda: generate(model))
