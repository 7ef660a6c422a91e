"""A sample service for the tour: requests that are parsed, looked up, rendered and packed, by two threads.

About half of the CPU time is Python code, the rest C code that Python calls (json, re, zlib, sorting), and the threads
rest between requests. Standard library only; nothing of it knows that it is profiled.
"""
import json
import random
import re
import threading
import time
import zlib

WORD = re.compile(r"[a-z]+")
TEXT = " ".join("".join(random.choices("abcdefghij", k=6)) for _ in range(4000))


def parse(body):
    return json.loads(body)


def distance(a, b):
    """Levenshtein distance: the hot Python loop."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


class Catalogue:
    def __init__(self, text):
        self.words = sorted(set(WORD.findall(text)))

    def search(self, word):
        near = [(distance(word, w), w) for w in self.words[:400]]
        return [w for _, w in sorted(near)[:10]]


def render(found):
    lines = ["<li>%s</li>" % w for w in found]
    return "<ul>\n" + "\n".join(lines * 200) + "\n</ul>"


def pack(page):
    return zlib.compress(page.encode(), 9)


def handle(catalogue, body):
    request = parse(body)
    return pack(render(catalogue.search(request["word"])))


def serve():
    catalogue = Catalogue(TEXT)
    while True:
        body = json.dumps({"word": random.choice(catalogue.words), "padding": TEXT[:20000]})
        handle(catalogue, body)
        time.sleep(0.02)


def main():
    for n in range(2):
        threading.Thread(target=serve, name="worker-%d" % n).start()
    print("sample-app is at work", flush=True)


if __name__ == "__main__":
    main()
