"""Inference with a small convolutional network in plain numpy: decode an image, three convolutions, a dense layer."""
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np
from loop import loop

rng = np.random.default_rng(2)


def decode_image(side=32):
    """Stands for JPEG decoding and normalising."""
    pixels = rng.integers(0, 256, (3, side, side)).astype(np.float32)
    return (pixels / 255.0 - 0.45) / 0.225


class Convolution:
    def __init__(self, inputs, outputs):
        self.weights = (rng.standard_normal((outputs, inputs * 9)) / np.sqrt(inputs * 9)).astype(np.float32)

    def columns(self, x):
        x = np.pad(x, ((0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(1, 2))
        return windows.transpose(0, 3, 4, 1, 2).reshape(x.shape[0] * 9, -1)

    def __call__(self, x):
        return (self.weights @ self.columns(x)).reshape(-1, *x.shape[1:])


def relu(x):
    return np.maximum(x, 0)


def pool(x):
    return x.reshape(x.shape[0], x.shape[1] // 2, 2, x.shape[2] // 2, 2).max((2, 4))


class Network:
    def __init__(self):
        self.layers = [Convolution(3, 16), Convolution(16, 32), Convolution(32, 64)]
        self.dense = (rng.standard_normal((64 * 16, 10)) / 32).astype(np.float32)

    def classify(self, image):
        x = image
        for layer in self.layers:
            x = pool(relu(layer(x)))
        return int((x.reshape(-1) @ self.dense).argmax())


if __name__ == "__main__":
    network = Network()
    loop("cnn", lambda: network.classify(decode_image()))
