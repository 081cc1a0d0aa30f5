"""When a trial whose limit has a least and a most may end: a rule fixed beforehand, of the step times alone.

The harness judges the steady state by itself, with change points; what both call held are the same seconds,
steps, share and tolerance.

Standard library and Python 3.6 syntax only.
"""

HELD_SECONDS = 60.0
HELD_STEPS = 200
HELD_SHARE = 0.5
"""A level that fills less of a window would not be its figure."""
TOLERANCE = 0.01
PARTS = 6
SET_ASIDE = 20
"""One in so many steps, the slowest of each part: a rare slow step neither ends a trial nor lengthens it."""
LOOK_EVERY_SECONDS = 15.0
"""It is asked at the least seconds and then this often, so that nothing in between can end a trial."""


def level_held(step_us, together=1):
    """Return whether the last 60 s, 200 steps and half have one level: the means of six parts are within 1 %.

    Of steps that end so many together the sums are looked at.
    """
    if together > 1:
        step_us = [sum(step_us[at : at + together]) for at in range(0, len(step_us) - together + 1, together)]
    least = HELD_STEPS / together
    least_us = max(HELD_SECONDS * 1e6, HELD_SHARE * sum(step_us))
    start, held_us = len(step_us), 0
    stride = 1 + len(step_us) // 1000
    while start and (len(step_us) - start < least or held_us < least_us):
        held_us += sum(step_us[max(0, start - stride) : start])
        start = max(0, start - stride)
    last = step_us[start:]
    if len(last) < least or held_us < least_us:
        return False
    edges = [part * len(last) // PARTS for part in range(PARTS + 1)]
    means = [_mean(last[edges[part] : edges[part + 1]]) for part in range(PARTS)]
    return max(means) - min(means) <= TOLERANCE * min(means)


def _mean(part):
    kept = sorted(part)[: len(part) - len(part) // SET_ASIDE]
    return sum(kept) / len(kept)
