"""`base_dsl.ast_preprocessor`: a class that programs patch to change how control flow is rewritten.

Nothing here rewrites by it: `if const_expr(a) and b:` and the like mean what they mean in Python
without a patch, so one has no effect.
"""

import ast

__all__ = ["DSLPreprocessor"]


class DSLPreprocessor(ast.NodeTransformer):
    """A rewriter of nothing, with the methods that programs replace."""

    def visit_If(self, node: ast.If) -> ast.AST:
        """Return the statement as it is."""
        return self.generic_visit(node)
