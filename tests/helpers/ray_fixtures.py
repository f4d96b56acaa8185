"""Ray on two cores of this machine."""

import pytest


@pytest.fixture(scope="module")
def ray_cluster():
    """Ray, connected to a small cluster of its own, not to one that another process has started."""
    ray = pytest.importorskip("ray")
    ray.init(address="local", num_cpus=2, num_gpus=0, include_dashboard=False, object_store_memory=80 * 2**20)
    yield ray
    ray.shutdown()
