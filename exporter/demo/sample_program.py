"""A small web shop that `otel-profile-exporter demo` profiles: SECONDS and a file to report to.

Each function that works measures its own CPU time by the thread's clock, so that the profile can be
held against it. Functions that only call others take next to none.
"""

import json
import sys
import threading
import time

SPENT = {}


def spent(name, start):
    """Books CPU time since `start`; each thread has its own names, so no lock is needed."""
    SPENT[name] = SPENT.get(name, 0.0) + time.thread_time() - start


class Catalogue:
    """Products with prices in cents."""

    def __init__(self, size):
        self.prices = [(number * 7919) % 10_000 for number in range(size)]

    def search(self, word):
        """Compares every product with the word: the most expensive part of the shop."""
        start = time.thread_time()
        best = score = 0
        for _ in range(6):
            for number, price in enumerate(self.prices):
                rank = (price * word) % 997
                if rank > score:
                    best, score = number, rank
        spent("Catalogue.search", start)
        return best


class Basket:
    """What a customer buys."""

    def __init__(self, catalogue):
        self.catalogue = catalogue

    def price_with_tax(self, product):
        """Adds tax item by item."""
        start = time.thread_time()
        total = 0
        for amount in range(6_000):
            total += (self.catalogue.prices[product] * amount * 119) // 100
        spent("Basket.price_with_tax", start)
        return total


def check_password(word):
    """A hash by hand, as slow as it looks."""
    start = time.thread_time()
    value = word
    for _ in range(4_000):
        value = (value * 31 + 7) & 0xFFFFFFFF
    spent("check_password", start)
    return value


def customers(until):
    """A generator of customers, until the shop closes."""
    number = 1
    while time.monotonic() < until:
        yield number
        number += 1


def serve(basket, customer):
    """One request: three calls deep."""
    check_password(customer)
    basket.price_with_tax(basket.catalogue.search(customer))


def shop(until):
    """The front thread."""
    basket = Basket(Catalogue(2_000))
    for customer in customers(until):
        serve(basket, customer)


def build_report(number):
    """Sums orders."""
    start = time.thread_time()
    total = 0
    for order in range(15_000):
        total += order ^ number
    spent("build_report", start)
    return total


def reports(until):
    """The thread that works for the owner."""
    for number in customers(until):
        build_report(number)


def main():
    """Opens the shop for the seconds asked for."""
    seconds, target = float(sys.argv[1]), sys.argv[2]
    until = time.monotonic() + seconds
    owner = threading.Thread(target=reports, args=(until,), name="reports")
    owner.start()
    shop(until)
    owner.join()
    with open(target, "w", encoding="utf-8") as file:
        json.dump({"total": time.process_time(), "functions": SPENT}, file)


main()
