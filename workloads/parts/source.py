"""The hash of a workload's parsed source, what it does without how it is written down.

Comments, docstrings and layout are left out, the modules that it shares with others are in. The same source
gives the same hash on every Python that can parse it: names that a later Python renamed are brought back to
one form.

Standard library and Python 3.6 syntax only.
"""

import ast
import hashlib
import os

_CONSTANTS = {"Num": "n", "Str": "s", "Bytes": "s", "NameConstant": "value"}
_NOT_MEANING = ("ctx", "kind", "type_comment", "type_ignores", "lineno", "col_offset")


def sha256(workload_file, own_file=None):
    """Hex digest over the workload and every module below the workloads' folder that it imports, by name.

    A framework's version lies below `frameworks/`, and names what it imports from the same place.
    `own_file` is one of the user's that the workload trains by; it counts with what it imports from there.
    """
    folder, name = _place_of(workload_file)
    digest = hashlib.sha256()
    trees = _with_shared(folder, name)
    if own_file is not None:
        own = _parsed(own_file)
        trees["own file"] = own
        for module in _imported(own):
            trees.update(_with_shared(folder, module))
    for module, tree in sorted(trees.items()):
        digest.update(("%s %s\n" % (module, meaning(tree))).encode("utf-8"))
    return digest.hexdigest()


def meaning(node):
    """A parsed source as text without docstrings, positions and empty fields."""
    if isinstance(node, list):
        return "[%s]" % ",".join(meaning(item) for item in node)
    if not isinstance(node, ast.AST):
        return repr(node)
    kind = type(node).__name__
    if kind in _CONSTANTS:
        return "Constant(value=%r)" % (getattr(node, _CONSTANTS[kind]),)
    if kind == "Ellipsis":
        return "Constant(value=Ellipsis)"
    if kind == "Index":
        return meaning(node.value)
    fields = []
    for name in sorted(node._fields):
        value = getattr(node, name, None)
        if name == "body" and isinstance(value, list):
            value = _without_docstring(node, value)
        if name not in _NOT_MEANING and value is not None and value != []:
            fields.append("%s=%s" % (name, meaning(value)))
    if kind == "Constant" and not fields:
        fields.append("value=None")
    return "%s(%s)" % (kind, ",".join(fields))


def _place_of(workload_file):
    """The workloads' folder, and the dotted name of a workload below it."""
    folder, name = os.path.split(os.path.abspath(workload_file)[:-3])
    above, framework = os.path.split(folder)
    if os.path.basename(above) == "frameworks":
        return os.path.dirname(above), "frameworks.%s.%s" % (framework, name)
    return folder, name


def _with_shared(folder, workload):
    """The parsed workload and all that it imports from below its folder, by dotted name."""
    trees = {}
    waiting = [workload]
    while waiting:
        name = waiting.pop()
        path = _path_of(folder, name)
        if name in trees or path is None:
            continue
        trees[name] = _parsed(path)
        waiting.extend(_imported(trees[name]))
    return trees


def _parsed(path):
    with open(path, encoding="utf-8") as file:
        return ast.parse(file.read())


def _path_of(folder, name):
    """The file of a module or package below the folder; None for what comes from elsewhere."""
    place = os.path.join(folder, *name.split("."))
    candidates = (place + ".py", os.path.join(place, "__init__.py"))
    return next((path for path in candidates if os.path.isfile(path)), None)


def _imported(tree):
    """Dotted names that may be modules: of `from a.b import c` these are a, a.b and a.b.c."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = ["%s.%s" % (node.module, alias.name) for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for length in range(1, len(parts) + 1):
                yield ".".join(parts[:length])


def _without_docstring(node, body):
    documented = isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    return body[1:] if documented and ast.get_docstring(node) is not None else body
