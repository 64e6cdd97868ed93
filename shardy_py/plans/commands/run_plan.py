"""``shardy plan``."""

from __future__ import annotations

import json
from typing import Any

import click

from shardy_py.api.keywords import keywords
from shardy_py.api.specs import parse_spec
from shardy_py.cli.files import write_output
from shardy_py.cli.origin import origin_of
from shardy_py.cli.session import GivenProgram
from shardy_py.cost.commands.run_advise import parse_size
from shardy_py.errors import Diagnostic, OptionError
from shardy_py.plans.planning import plan


def run_plan(
    *,
    machine: str,
    minimise: Any,
    budget_memory: str | None,
    fixed: tuple[str, ...],
    results: Any,
    gap: float,
    known_layouts: bool | None,
    form: str | None,
    output: str | None,
    **session_options: Any,
) -> None:
    """Print or write the plan of one program."""
    program = GivenProgram.of(**session_options)
    fix: dict[int | str, Any] = {}
    for text in fixed:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip():
            message = f"--fix {text}: this is not ARG=SPEC"
            raise OptionError(Diagnostic("invalid-fix", message, hint="--fix arg0=data,None"))
        fix[name.strip()] = parse_spec(spec)
    sharding_plan = plan(
        **keywords(program.input),
        machine=machine,
        minimise=minimise,
        budget_memory=None if budget_memory is None else parse_size(budget_memory),
        fix=fix or None,
        results=results,
        gap=gap / 100,
        known_layouts=known_layouts,
        options=program.options,
    )
    if form == "json":
        text = json.dumps({"origin": origin_of(program), **sharding_plan.to_json()}, indent=2)
    else:
        forms = {
            None: sharding_plan.__str__,
            "jax": sharding_plan.to_jax,
            "propagate": sharding_plan.to_propagate,
            "torch": sharding_plan.to_torch,
            "mlir": sharding_plan.to_mlir,
        }
        text = forms[form]()
    if output is None:
        click.echo(text)
    else:
        write_output(output, text + "\n")
