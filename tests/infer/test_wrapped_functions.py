"""Functions behind what decorators put around them."""

from __future__ import annotations

from tests.infer.programs import known


def test_a_wrapper_around_each_of_many_layers_is_no_recursion() -> None:
    wrappers = """
        import functools
        def renamed(old, new):
            def decorator(function):
                @functools.wraps(function)
                def wrapped(*args, **kwargs):
                    if old in kwargs:
                        kwargs[new] = kwargs.pop(old)
                    return function(*args, **kwargs)
                return wrapped
            return decorator
    """
    levels = "\n".join(
        f"""
        @renamed("input", "x")
        def level_{n}(x):
            return level_{n - 1}(x)"""
        for n in range(1, 7)
    )
    program = f"""{wrappers}
        def level_0(x):
            return x.half()
        {levels}
        y = level_6(input=torch.ones(2))
        y.sum()
    """
    assert known(program)["level_6(input=torch.ones(2))"] == "float16"
