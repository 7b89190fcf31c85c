"""What holds for all tests."""

from hypothesis import settings

from service.main.children import preload_children

# No example has a deadline of its own: of the 200 ms that it would have (where the variable CI is not set), a loaded
# machine may need more for one and less when it is tried again, which Hypothesis then calls a flaky test.
settings.register_profile("unhurried", settings.default, deadline=None)
settings.load_profile("unhurried")
preload_children()
