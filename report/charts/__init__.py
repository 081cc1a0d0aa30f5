"""The report's drawings: frozen data in, SVG or PNG out. matplotlib is loaded when the first is drawn."""

import os

# matplotlib reads its settings as it is imported, and a notebook's backend that is not installed here ends
# that. What a chart looks like is said in `style` alone.
os.environ["MPLBACKEND"] = "agg"
os.environ["MATPLOTLIBRC"] = os.devnull
