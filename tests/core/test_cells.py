"""Places in a notebook are named by the cell, as IPython names it."""

import sys
import types

from basedsl.location import Span


class Compiler:
    def format_code_name(self, name):
        return ("Cell", "In[4]") if name == "/tmp/ipykernel_7/11.py" else None


def test_a_place_in_a_cell(monkeypatch):
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(compile=Compiler())
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert str(Span("/tmp/ipykernel_7/11.py", 2)) == "cell [4], line 2"
    assert "--> cell [4], line 2" in Span("/tmp/ipykernel_7/11.py", 2).excerpt()
    assert str(Span("program.py", 2)) == "program.py:2"


def test_a_program_outside_of_a_notebook(monkeypatch):
    module = types.ModuleType("IPython")
    module.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert str(Span("program.py", 2)) == "program.py:2"
