"""The table of arguments is made from the options."""

from tests.docs.arguments import PAGE, page


def test_the_table_is_up_to_date():
    """Who changes an option runs ``python -m tests.docs.arguments``."""
    assert PAGE.read_text(encoding="utf-8") == page()
