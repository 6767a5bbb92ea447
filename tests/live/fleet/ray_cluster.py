"""A Ray cluster of two nodes on this machine, with two actors that are always busy on each. Prints ADDRESS host:port, then PID <pid> of each actor; runs until it is killed."""
import time

import ray
from ray.cluster_utils import Cluster

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
cluster.add_node(num_cpus=2)
ray.init(cluster.address, log_to_driver=False, logging_level="error")


@ray.remote(num_cpus=1)
class Busy:
    def pid(self):
        import os
        return os.getpid()

    def compute(self, seconds):
        end = time.monotonic() + seconds
        total = 0
        while time.monotonic() < end:
            total += sum(range(1000))
            time.sleep(0.001)
        return total


actors = [Busy.remote() for _ in range(4)]
print("ADDRESS", cluster.address, flush=True)
for actor in actors:
    print("PID", ray.get(actor.pid.remote()), flush=True)
print("READY 0", flush=True)
ray.get([actor.compute.remote(120) for actor in actors])
