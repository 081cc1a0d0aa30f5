"""The report's drawings: frozen data in, SVG or PNG out. matplotlib is loaded when the first is drawn."""
