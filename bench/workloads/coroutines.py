"""Coroutines: direct awaits, two gathered tasks, an async generator and a task that only waits, in two threads at once.

Truth: amain -> a -> b -> b_burn, x1 -> x2 -> x_burn and y1 -> y_burn (gathered), consume -> agen -> g_burn, each under
the event loop's own frames; CPU time by leaf and by thread.  Every chain is resumed after a real suspension.
`waiter` sleeps all the time and has no CPU time to be charged with.
"""
import asyncio
import threading
import _wl
from _wl import cpu

T = _wl.Truth("coroutines", __file__)


def b_burn(rec, n):
    rec.capture("b_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@b_burn
        x = (x * 3 + i) & 0xFFFF                #@b_burn
    rec.add("b_burn", cpu() - t0)


def x_burn(rec, n):
    rec.capture("x_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@x_burn
        x = (x * 3 + i) & 0xFFFF                #@x_burn
    rec.add("x_burn", cpu() - t0)


def y_burn(rec, n):
    rec.capture("y_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@y_burn
        x = (x * 3 + i) & 0xFFFF                #@y_burn
    rec.add("y_burn", cpu() - t0)


def g_burn(rec, n):
    rec.capture("g_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@g_burn
        x = (x * 3 + i) & 0xFFFF                #@g_burn
    rec.add("g_burn", cpu() - t0)


async def b(rec, n):
    await asyncio.sleep(0)
    b_burn(rec, n)                              #@call:b>b_burn


async def a(rec, n):
    await b(rec, n)                             #@call:a>b


async def x2(rec, n):
    await asyncio.sleep(0)
    x_burn(rec, n)                              #@call:x2>x_burn


async def x1(rec, n):
    await x2(rec, n)                            #@call:x1>x2


async def y1(rec, n):
    await asyncio.sleep(0)
    y_burn(rec, n)                              #@call:y1>y_burn


async def agen(rec, n):
    for _ in range(4):
        await asyncio.sleep(0)
        g_burn(rec, n // 4)                     #@call:agen>g_burn
        yield n


async def consume(rec, n):
    async for _ in agen(rec, n):                #@call:consume>agen
        pass


async def waiter():
    while True:
        await asyncio.sleep(0.05)


async def amain(rec, seed, seconds, units):
    rng = _wl.random.Random(seed)
    idle = asyncio.ensure_future(waiter())
    end = _wl.wall() + seconds
    done = 0
    while (done < units) if units else (_wl.wall() < end):
        k = rng.randint(5, 15)
        await a(rec, 2000 * k)                                          #@call:amain>a
        await asyncio.gather(x1(rec, 1500 * k), y1(rec, 1000 * k))
        await consume(rec, 500 * k)                                     #@call:amain>consume
        done += k
    idle.cancel()
    return done


def drive(rec, seed, seconds, units, out):
    c0 = cpu()
    loop = asyncio.new_event_loop()
    done = loop.run_until_complete(amain(rec, seed, seconds, units))
    loop.close()
    out.append((threading.current_thread().name, _wl.native_id(), cpu() - c0, done))


def main():
    args = _wl.args()
    _wl.gate(args)
    recs, out = [_wl.Child(), _wl.Child()], []
    t = threading.Thread(target=drive, args=(recs[1], 2, args.seconds, args.units // 2, out), name="loop-2")
    t.start()
    drive(recs[0], 1, args.seconds, args.units - args.units // 2, out)  #@call:main>drive
    t.join()
    for r in recs:
        T.merge(r.report())
    # A coroutine function runs in its caller for a moment, to make the coroutine (RETURN_GENERATOR, 3.11 and later).
    T._edges |= {("amain", "x1"), ("amain", "y1"), ("amain", "waiter")}
    T.add("waiter", 0.0)
    T.d["units"] = sum(x[3] for x in out)
    threads = {"loop-2" if n == "loop-2" else "main": {"cpu": sum(r.d["cpu"].values()), "tid": tid}
               for r, (n, tid, _, _) in zip(recs, sorted(out, key=lambda x: x[0] == "loop-2"))}
    whole = sum(x["cpu"] for x in threads.values()) or 1.0
    for x in threads.values():
        x["share"] = x["cpu"] / whole
    T.write(args, threads=threads)


if __name__ == "__main__":
    main()                                      #@call:<module>>main
