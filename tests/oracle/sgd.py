#!/usr/bin/env python3
"""Oracle for SGD, written from the rule of torch.optim.SGD (spec, section 10), not from largo's C.

    d <- g + weight_decay w          (g <- -g first if maximize)
    b <- d                           at the first step
    b <- momentum b + (1 - dampening) d        later
    w <- w - lr d                    without momentum (no buffer is kept)
    w <- w - lr b                    with momentum
    w <- w - lr (d + momentum b)     Nesterov

Inputs, sampling, sums and tolerance are those of optimizers.py: one run in float64, one that emulates float32
state; the distance between them makes the tolerance.

Cross-check: torch.optim.SGD of torch 1.13 in float64, 20 steps, every HP x SHAPE below: largest difference 2.9e-14
of the movement (selftest repeats it where torch can be imported).

usage: sgd.py emit [DIR]     write DIR/sgd.json (default: ../golden)
       sgd.py selftest       hand-made numbers, and torch.optim.SGD where torch can be imported
"""
import os, sys
import numpy as np
from optimizers import F32, F64, SHAPES, Opt, dump, fix, gen, run_case, seeds


class SGD(Opt):
    defaults = dict(lr=1e-3, momentum=0.0, dampening=0.0, nesterov=False, wd=0.0, maximize=False)

    def one(self, w, g, st, info):
        h, dt = self.hp, self.dt
        if h["maximize"]:
            g = -g
        d = g + dt(h["wd"]) * w if h["wd"] != 0 else g
        if h["momentum"] == 0:
            return w - dt(h["lr"]) * d
        if "b" not in st:
            st["b"] = np.array(d)
        else:
            st["b"] = dt(h["momentum"]) * st["b"] + dt(1.0 - h["dampening"]) * d
        step = d + dt(h["momentum"]) * st["b"] if h["nesterov"] else st["b"]
        return w - dt(h["lr"]) * step


HP = [dict(lr=0.125), dict(lr=0.125, wd=0.1), dict(lr=0.125, maximize=True, wd=0.01),
      dict(lr=0.0625, momentum=0.9), dict(lr=0.0625, momentum=0.9, wd=0.1),
      dict(lr=0.0625, momentum=0.9, dampening=0.5), dict(lr=0.0625, momentum=0.5, dampening=1.0, wd=0.01),
      dict(lr=0.0625, momentum=0.9, nesterov=True), dict(lr=0.0625, momentum=0.9, nesterov=True, wd=0.1),
      dict(lr=0.0625, momentum=0.9, maximize=True, wd=0.1), dict(lr=0.0625, momentum=0.9, nesterov=True, maximize=True)]

# On the first three sets and the Nesterov one. huge_g: SGD squares nothing, 2^100 is legal.
SPECIAL = [("zero_w", dict(all_zero=True), {}), ("zero_g", {}, dict(all_zero=True)),
           ("zero_both", dict(all_zero=True), dict(all_zero=True)), ("huge_g", {}, dict(exp=100)),
           ("tiny_g", {}, dict(exp=-100)), ("subnormal_g", {}, dict(exp=-123, spread=1)), ("huge_w", dict(exp=40), {}),
           ("tiny_w", dict(exp=-40), {}), ("const_g", {}, dict(const=True))]


def case(name, shapes, hp, idx, ws={}, gs={}):
    sw, sg = seeds(idx)
    tensors = [dict(shape=shape, w=dict(dict(seed=sw + j, exp=-1, spread=3), **ws),
                    g=dict(dict(seed=sg + 20 * j, exp=-3, spread=5), **gs)) for j, shape in enumerate(shapes)]
    c = run_case(name, SGD, tensors, hp)
    c["fp32"] = "ok"  # 2^64 is no limit here: nothing is squared
    return c


def emit(out):
    cases, idx = [], 100
    for hi, hp in enumerate(HP):
        for shape in SHAPES:
            idx += 1
            cases.append(case(f"sgd/hp{hi}/{'x'.join(map(str, shape))}", [shape], hp, idx))
    for hi in (0, 1, 3, 8):
        for nm, ws, gs in SPECIAL:
            idx += 1
            cases.append(case(f"sgd/special{hi}/{nm}", [(3, 4)], HP[hi], idx, ws, gs))
    cases.append(case("sgd/group", [(3, 4), (0,), (), (7,), (2, 3, 3, 3)], HP[4], idx + 1))
    dump(out, "sgd", dict(optimizer="sgd", defaults=fix(SGD.defaults), cases=cases))


def by_hand():
    """Two steps on one number: w = 1, g = 2 then 4, lr 1/2, momentum 1/2, wd 1/4; exact in binary."""
    def run(**hp):
        o = SGD([np.array([1.0])], lr=0.5, wd=0.25, **hp)
        o.step([np.array([2.0])])
        o.step([np.array([4.0])])
        return float(o.w[0][0])
    # d1 = 2.25, w1 = -0.125; d2 = 4 - 0.03125 = 3.96875
    assert run() == -0.125 - 0.5 * 3.96875
    assert run(momentum=0.5) == -0.125 - 0.5 * (0.5 * 2.25 + 3.96875)
    assert run(momentum=0.5, dampening=0.5) == -0.125 - 0.5 * (0.5 * 2.25 + 0.5 * 3.96875)
    # Nesterov: w1 = 1 - 0.5 (2.25 + 1.125) = -0.6875; d2 = 4 - 0.171875; b2 = 1.125 + d2
    d2 = 4 - 0.171875
    assert run(momentum=0.5, nesterov=True) == -0.6875 - 0.5 * (d2 + 0.5 * (1.125 + d2))
    # maximize: d1 = -2 + 0.25 = -1.75, w1 = 1.875; d2 = -4 + 0.46875
    assert run(maximize=True) == 1.875 - 0.5 * (-4 + 0.46875)


def by_torch():
    import torch
    worst = 0.0
    for hp in HP:
        for shape in SHAPES:
            w0 = gen(dict(seed=5, exp=-1, spread=3), shape)
            o, p = SGD([w0], **hp), torch.nn.Parameter(torch.tensor(w0, dtype=torch.float64))
            t = torch.optim.SGD([p], lr=hp["lr"], momentum=hp.get("momentum", 0), dampening=hp.get("dampening", 0),
                                weight_decay=hp.get("wd", 0), nesterov=hp.get("nesterov", False),
                                maximize=hp.get("maximize", False))
            for k in range(1, 21):
                g = gen(dict(seed=900, exp=-3, spread=5), shape, k)
                p.grad = torch.tensor(g, dtype=torch.float64)
                t.step()
                o.step([g])
                moved = float(np.max(np.abs(o.w[0] - w0)))
                worst = max(worst, float(np.max(np.abs(p.detach().numpy() - o.w[0]))) / moved)
    print(f"torch {torch.__version__}: largest difference {worst:.2g} of the movement")
    assert worst < 1e-12


def selftest():
    by_hand()
    try:
        by_torch()
    except ImportError:
        print("torch is not here; hand-made numbers only")
    print("selftest ok")


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    a = sys.argv[1:] or ["selftest"]
    if a[0] == "emit":
        emit(a[1] if len(a) > 1 else os.path.join(here, "..", "golden"))
    else:
        selftest()
