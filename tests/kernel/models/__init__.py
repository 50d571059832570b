"""Small but nasty models: whatever executes one of them must give the same history.

Each is a function that builds a fresh simulation; `observe` runs one and returns all that can be compared. Entities
keep a diary of all that reaches them, so that a difference shows in their final states as well, with the place at which
it begins. What an entity keeps under a name that begins with an underscore can't leave a worker, and isn't compared.
"""

# Each of these adds its models to the collection.
from tests.kernel.models import classics, equal_times, links, lives, payloads, processes  # noqa: F401
from tests.kernel.models.collection import MODELS, Case, Diarist, Observation, difference, observe, states
from tests.kernel.models.riots import riot

__all__ = ["MODELS", "Case", "Diarist", "Observation", "difference", "observe", "riot", "states"]
