"""Passes of plugins over the modules of kernels, which are verified after each."""

from __future__ import annotations

from xdsl.dialects import builtin
from xdsl.utils.exceptions import VerifyException

from shardy_py.errors import Diagnostic
from shardy_py.guards.error_texts import describe_error
from shardy_py.kernels.passes.base import KernelPass
from shardy_py.plugins import Registry
from shardy_py.transforms.plugin_passes import SubjectKind, insert_passes
from shardy_py.values import frozen


@frozen(eq=False)
class KernelModuleCheck:
    """The check of a kernel's module after a pass of a plugin.

    Args:
        module: The module.
    """

    module: builtin.ModuleOp

    def is_untouched(self, own_names: frozenset[str]) -> bool:
        """Return False: a kernel is for one fusion, so that no pass of a plugin fails beside the point."""
        return False

    def find_problem(self) -> Diagnostic | None:
        """Return why the module does not verify, or None."""
        try:
            self.module.verify()
        except VerifyException as error:
            return Diagnostic("broken-module", str(error).splitlines()[0])
        except Exception as error:
            return Diagnostic("broken-module", f"verifying it fails with {describe_error(error)}")
        return None


KERNEL_MODULES = SubjectKind("kernel", KernelModuleCheck, has_one_pipeline=True)


def with_plugin_passes(passes: tuple[KernelPass, ...], registry: Registry) -> tuple[KernelPass, ...]:
    """Return passes over kernels with those of plugins: before the first of the name that they give, or after the last.

    Several beside the same one come in the order of their names.

    Raises:
        PluginError: a pass names none of the passes, or cannot be made.
    """
    return insert_passes(passes, registry.kernel_passes, registry, KERNEL_MODULES)
