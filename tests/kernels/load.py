import sys, time
def leaf(n):
    s = 0
    for i in range(n):
        s += i * i
    return s
def rec(d):
    if d == 0:
        return leaf(20000)
    return rec(d - 1)
t = time.time()
while time.time() - t < float(sys.argv[2]):
    rec(int(sys.argv[1]))
