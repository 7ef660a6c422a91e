"""Python code that the interpreter calls on its own: finalizers, gc callbacks and weak reference callbacks that burn.

drop -> Plain.__del__ -> del_burn (last reference goes), collect -> Cycle.__del__ -> cycle_burn (the collector finds it),
collect -> on_gc -> callback_burn (gc.callbacks), drop -> on_dead -> weak_burn (weakref), and allocate -> on_gc ->
auto_burn, where no gc.collect() is called and the collector starts by itself.
"""
import gc
import weakref
import _wl
from _wl import cpu

T = _wl.Truth("gc", __file__)
NOW = {"k": 0, "auto": False}


def del_burn(n):
    c0 = cpu()
    T.capture("del_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@del_burn
        x = (x * 3 + i) & 0xFFFF                #@del_burn
    T.add("del_burn", cpu() - t0)
    T.leaf("del_burn", c0)


def cycle_burn(n):
    c0 = cpu()
    T.capture("cycle_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@cycle_burn
        x = (x * 3 + i) & 0xFFFF                #@cycle_burn
    T.add("cycle_burn", cpu() - t0)
    T.leaf("cycle_burn", c0)


def callback_burn(n):
    c0 = cpu()
    T.capture("callback_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@callback_burn
        x = (x * 3 + i) & 0xFFFF                #@callback_burn
    T.add("callback_burn", cpu() - t0)
    T.leaf("callback_burn", c0)


def weak_burn(n):
    c0 = cpu()
    T.capture("weak_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@weak_burn
        x = (x * 3 + i) & 0xFFFF                #@weak_burn
    T.add("weak_burn", cpu() - t0)
    T.leaf("weak_burn", c0)


def auto_burn(n):
    c0 = cpu()
    T.capture("auto_burn")
    x = 0
    t0 = cpu()
    for i in range(n):                          #@auto_burn
        x = (x * 3 + i) & 0xFFFF                #@auto_burn
    T.add("auto_burn", cpu() - t0)
    T.leaf("auto_burn", c0)


class Plain:
    def __del__(self):
        del_burn(4000 * NOW["k"])               #@call:__del__>del_burn


class Cycle:
    def __del__(self):
        cycle_burn(3000 * NOW["k"])             #@call:__del__>cycle_burn


class Watched:
    pass


def on_dead(_):
    weak_burn(1000 * NOW["k"])                  #@call:on_dead>weak_burn


def on_gc(phase, info):
    if phase == "start" and NOW["k"]:
        if NOW["auto"]:
            auto_burn(1000 * NOW["k"])          #@call:on_gc>auto_burn
        else:
            callback_burn(1500 * NOW["k"])      #@call:on_gc>callback_burn


def drop():
    x = Plain()
    del x                                       #@call:drop>__del__
    y = Watched()
    r = weakref.ref(y, on_dead)
    del y                                       #@call:drop>on_dead
    return r


def collect():
    x = Cycle()
    x.me = x
    del x
    gc.collect()                                #@call:collect>__del__ #@call:collect>on_gc


def allocate():
    """Enough new containers for about one automatic collection of the youngest generation."""
    NOW["auto"] = True
    gc.enable()
    keep = []
    for _ in range(3000):
        keep.append([])
    gc.disable()
    NOW["auto"] = False


def main():
    a = _wl.args()
    gc.disable()
    gc.callbacks.append(on_gc)
    _wl.gate(a)
    end = _wl.wall() + a.seconds
    while (T.d["units"] < a.units) if a.units else (_wl.wall() < end):
        NOW["k"] = _wl.rng.randint(3, 10)
        drop()                                  #@call:main>drop
        collect()                               #@call:main>collect
        allocate()                              #@call:main>allocate
        T.d["units"] += NOW["k"]
    NOW["k"] = 0
    gc.callbacks.remove(on_gc)
    T.write(a)


if __name__ == "__main__":
    main()                                      #@call:<module>>main
