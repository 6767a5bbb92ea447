"""A small server of greenlets: clients and servers of gevent talk over sockets, and greenlets switch in the middle of deep calls. Checks its answers.

Prints READY <pid>; at the end of stdin OK with the number of answers, or FAIL."""
from gevent import monkey

monkey.patch_all(sys=False)

import os
import sys

import gevent
import gevent.queue
from gevent import socket

answers, wrong = [0], []


def parse(text):
    return sum(int(word) for word in text.split())


def answer(text, depth=3):
    """The switch is in the middle of a recursion."""
    if depth:
        return answer(text, depth - 1)
    gevent.sleep(0)
    return b"%d\n" % sum(parse(text) for _ in range(50))


def serve(connection):
    for line in connection.makefile("rb"):
        connection.sendall(answer(line))


def ask(ours, number, stop):
    lines = ours.makefile("rb")
    while not stop:
        ours.sendall(b"%d %d %d\n" % (number, number + 1, number + 2))
        if int(lines.readline()) != 50 * (3 * number + 3):
            wrong.append(number)
        answers[0] += 1
    ours.shutdown(socket.SHUT_WR)


def main():
    stop, greenlets = [], []
    for number in range(8):
        ours, theirs = socket.socketpair()
        greenlets += [gevent.spawn(serve, theirs), gevent.spawn(ask, ours, number, stop)]
    print("READY", os.getpid(), flush=True)
    gevent.os.make_nonblocking(0)
    while gevent.os.nb_read(0, 100):
        pass
    stop.append(True)
    gevent.joinall(greenlets, timeout=20)
    good = not wrong and answers[0] > 100 and all(one.ready() for one in greenlets)
    print("OK" if good else "FAIL", "%d answers, wrong: %s" % (answers[0], wrong[:5]), flush=True)


import gevent.os
main()
