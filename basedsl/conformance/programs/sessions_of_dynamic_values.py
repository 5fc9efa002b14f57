"""Several calls of one function that leaves a dynamic value in an object that outlives the call:
an error, since the next call has no such value.
"""

# mypy: ignore-errors
# ruff: noqa: B006

from basedsl.conformance.cases import session

OUTLIVES = "outlives the call and cannot hold a dynamic value"


@session((3,), (4,), message=f"'log[0]' {OUTLIVES}")
def a_dynamic_item_of_a_dict(jit):
    log = {0: 1}

    def main(n):
        log[0] = n
        return n

    return main, lambda: log


@session((3,), (4,), message=f"'log' {OUTLIVES}")
def a_dynamic_value_in_a_list(jit):
    log = []

    def main(n):
        log.append(n + 1)
        return n

    return main, lambda: log


@session((3,), (4,), message=f"'account.value' {OUTLIVES}")
def a_dynamic_attribute(jit):
    class Account:
        def __init__(self):
            self.value = 0

    account = Account()

    def main(n):
        account.value += n
        return account.value

    return main, lambda: account.value


@session((3,), (4,), message=f"'log' {OUTLIVES}")
def a_dynamic_value_in_a_nested_tuple(jit):
    log = []

    def main(n):
        log.append(("n", (n, 1)))
        return n

    return main, lambda: log


@session((3,), (4,), message=f"'helper.__defaults__' {OUTLIVES}")
def a_dynamic_value_in_a_mutable_default(jit):
    def helper(x, held=[0]):
        held[0] = held[0] + x
        return held[0]

    def main(n):
        return helper(n)

    return main, lambda: helper.__defaults__


@session((3,), (4,), message="outlives the call")
def a_memo_of_dynamic_values(jit):
    memo = {}

    def double(k):
        if "k" not in memo:
            memo["k"] = k * 2
        return memo["k"]

    def main(n):
        return double(n)

    return main, lambda: memo
