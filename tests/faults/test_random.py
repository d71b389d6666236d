"""Goal: no moment is safe by luck: kills at random times, several jobs at once, several kills.

Method: dice from FAULT_SEED; FAULT_ROUNDS rounds. Each starts a few jobs, kills a few victims at
whatever they are doing just then, ends what is left, and checks the world.
"""

import random
import time

import walk
from conftest import ROUNDS, SEED


def test_kills_at_random_times(world):
    dice = random.Random(SEED)
    for number in range(ROUNDS):
        world.refresh(kills_max=0)
        jobs = [world.start_job() for _ in range(dice.randint(1, 3))]
        story = []
        for _ in range(dice.randint(1, 3)):
            wait = dice.uniform(0, 1.5)
            victim = dice.choice(walk.VICTIMS)
            time.sleep(wait)  # the point is that no condition chooses the moment
            for _, result in jobs:
                if "lease" in result and dice.random() < 0.4:
                    world.end_job(result["lease"])
            world.strike(victim)
            story.append(f"{wait:.3f} s, {victim}")
        try:
            for thread, _ in jobs:
                thread.join(timeout=120)
                assert not thread.is_alive(), "the command line hangs"
            world.settle()
            world.check()
        except AssertionError as error:
            raise AssertionError(f"round {number}, {len(jobs)} jobs, {story}: {error}") from error
    world.passed = True
