"""A loop of one's own on Ray: the driver runs it, actors make rollouts, tasks score them.

python examples/ray/train.py
"""

import time

import ray

import rlotel

rlotel.instrument(algorithm="GRPO", model="tiny", environment="arithmetic")
ray.init()


@ray.remote(num_cpus=0)
def score(rollout: str) -> float:
    with rlotel.reward():
        time.sleep(0.02)
        return float(len(rollout))


@ray.remote(num_cpus=0)
class Engine:
    def generate(self, prompt: str) -> str:
        with rlotel.phase("generate"):
            time.sleep(0.1)
            return prompt + "!"


def main() -> None:
    engines = [Engine.remote() for _ in range(2)]
    for iteration in range(5):
        with rlotel.loop(iteration=iteration) as loop:
            with rlotel.sample(batch_size=2) as sample:
                rollouts = ray.get([engine.generate.remote("2 + 2 =") for engine in engines])
                sample.add(samples=2, completion_tokens=2)
            with rlotel.reward():
                rewards = ray.get([score.remote(rollout) for rollout in rollouts])
            with rlotel.train(batch_size=2) as train:
                time.sleep(0.2)
                train.add(steps=1, tokens=12)
            loop.set(reward=sum(rewards) / len(rewards))


if __name__ == "__main__":
    main()
