"""Services with nothing wrong, under a load of their own, until they are ended.

layers      layers of numpy on one thread, batch after batch with a little wait between
coroutines  a service of asyncio that answers eight clients
server      an HTTP server that gives each request a thread, and one client
"""
import asyncio
import http.server
import json
import os
import sys
import threading
import time
import urllib.request

BODY = json.dumps({"values": list(range(60))}).encode()


def score(body):
    values = json.loads(body)["values"]
    return json.dumps({"mean": sum(values) / len(values), "most": max(values)}).encode()


def layers():
    import numpy
    random = numpy.random.default_rng(1)
    weights = [random.standard_normal((512, 512), dtype=numpy.float32) * 0.05 for _ in range(4)]

    def dense(batch, weight):
        return numpy.maximum(batch @ weight, 0)

    def classify(batch):
        for weight in weights:
            batch = dense(batch, weight)
        return batch.argmax(axis=1)
    while True:
        for _ in range(5):
            classify(random.standard_normal((16, 512), dtype=numpy.float32))
        time.sleep(0.002)


def coroutines():
    async def answer(reader, writer):
        while True:
            writer.write(score(await reader.readline()) + b"\n")
            await writer.drain()

    async def ask(port):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            writer.write(BODY + b"\n")
            await writer.drain()
            await reader.readline()
            await asyncio.sleep(0.005)

    async def serve():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        await asyncio.gather(*(ask(server.sockets[0].getsockname()[1]) for _ in range(8)))
    asyncio.run(serve())


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        answer = score(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def server():
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    def ask():
        while True:
            with urllib.request.urlopen("http://127.0.0.1:%d/" % service.server_port, BODY) as answer:
                answer.read()
            time.sleep(0.01)
    threading.Thread(target=ask, daemon=True).start()
    service.serve_forever()


print("READY", os.getpid(), flush=True)
{"layers": layers, "coroutines": coroutines, "server": server}[sys.argv[1]]()
