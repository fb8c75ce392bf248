from collections.abc import Iterator

import pytest
import torch

from draftboard import models
from draftboard.methods.engine import LanguageModel


@pytest.fixture(scope="module")
def target() -> Iterator[LanguageModel]:
    """The bundled model on one thread: with several, waiting threads count as CPU time."""
    if not models.is_fetched("smollm2-135m"):
        pytest.skip("the bundled model is not in the cache: draftboard fetch smollm2-135m")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield LanguageModel(models.load_model(models.resolve("smollm2-135m"), dtype="float32", device="cpu"))
    torch.set_num_threads(threads)
