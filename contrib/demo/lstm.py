"""Inference with a two-layer LSTM in plain numpy: step by step over a sequence, so that Python's own cost shows."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from loop import loop

WIDTH, STEPS = 96, 48
rng = np.random.default_rng(3)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


class Cell:
    def __init__(self):
        self.weights = (rng.standard_normal((2 * WIDTH, 4 * WIDTH)) / np.sqrt(2 * WIDTH)).astype(np.float32)
        self.bias = np.zeros(4 * WIDTH, np.float32)

    def step(self, x, hidden, memory):
        gates = np.concatenate((x, hidden)) @ self.weights + self.bias
        enter, forget, out, new = np.split(gates, 4)
        memory = sigmoid(forget) * memory + sigmoid(enter) * np.tanh(new)
        return sigmoid(out) * np.tanh(memory), memory


class Network:
    def __init__(self):
        self.cells = [Cell(), Cell()]

    def predict(self, sequence):
        states = [(np.zeros(WIDTH, np.float32), np.zeros(WIDTH, np.float32)) for _ in self.cells]
        for x in sequence:
            for i, cell in enumerate(self.cells):
                states[i] = cell.step(x, *states[i])
                x = states[i][0]
        return states[-1][0]


if __name__ == "__main__":
    network = Network()
    loop("lstm", lambda: network.predict(rng.standard_normal((STEPS, WIDTH)).astype(np.float32)))
