"""Names of the values and ops of a session, as all commands accept them."""

from __future__ import annotations

from shardy_py.cost.session import Session
from shardy_py.trace.labels import Labels
from shardy_py.trace.original_names import GivenNames


def session_labels(session: Session) -> Labels:
    """Return the names of a session's values and ops.

    They are those of the module that was read if the session keeps them (see `Session.open`), else those of the
    program as propagation finds it.
    """
    names = session.names or GivenNames.of(session.program, session.main)
    return names.labels(session.program, session.problem, session.copies)
