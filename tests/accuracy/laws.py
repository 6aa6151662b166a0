#!/usr/bin/env python3
"""laws.py - of the judges' own arithmetic: what is drawn, and figures of made-up rounds whose truth is known."""
import math
import pathlib
import random
import sqlite3
import tempfile
import unittest

import accuracy
import draw
import judge
import others
import searches


def measured_rounds(rng, truth, rounds, noise):
    """Runs of strategies with these true seconds; a round is slow or fast as a whole."""
    runs = []
    for number in range(rounds):
        weather = math.exp(rng.gauss(0, 0.2))
        runs += [{"search": 0, "strategy": k, "round": number, "measured_s": s * weather * math.exp(rng.gauss(0, noise))}
                 for k, s in enumerate(truth)]
    return runs


def search_of(rng, truth, predicted, rounds=8, noise=0.02):
    row = {"search": 0, "strategies": [{"strategy": f"dp={k}", "searched_s": s} for k, s in enumerate(predicted)]}
    return searches.Search(row, measured_rounds(rng, truth, rounds, noise), "measured_s")


class Others(unittest.TestCase):
    def test_no_other_is_one_of_the_known_or_drawn_twice(self):
        known = {(net, image) for net, image, _ in others.KNOWN}
        for seed in range(20):
            found = others.draw(random.Random(seed), lambda p: 0.1 if p["image"] < 800 else 9, 10, 3)
            self.assertEqual(len({tuple(p.values()) for p in found}), 10)
            self.assertFalse(known & {(p["net"], p["image"]) for p in found})
            self.assertLess(max(p["image"] for p in found), 800)


class Draws(unittest.TestCase):
    def drawn(self, seed):
        return draw.draw_configurations(seed, 30, 8, lambda problem, strategy: 0.1)

    def test_a_seed_draws_the_same_and_another_one_others(self):
        self.assertEqual(self.drawn(1), self.drawn(1))
        self.assertNotEqual(self.drawn(1), self.drawn(2))

    def test_no_configuration_is_drawn_twice_and_none_is_refused(self):
        rng = random.Random(3)
        refused = set()

        def predict(problem, strategy):
            if rng.random() < 0.7:
                return 0.1
            refused.add((*problem.values(), strategy))
            return None
        found = [(c["net"], c["image"], c["batch"], c["mode"], c["strategy"])
                 for c in draw.draw_configurations(5, 30, 8, predict)]
        self.assertEqual(len(set(found)), 30)
        self.assertFalse(refused & set(found))
        self.assertTrue(refused)

    def test_no_batch_of_a_replica_is_a_power_of_two(self):
        for _, _, _, batches in draw.NETS:
            for batch in batches:
                for replicas in (1, 2, 4):
                    images = batch // replicas
                    self.assertTrue(batch % replicas or images & (images - 1) or images == 1, (batch, replicas))

    def test_searches_begin_with_the_pairs_of_accuracy(self):
        self.assertEqual(draw.draw_pairs(random.Random(4), 8), draw.draw_pairs(random.Random(4), 20)[:8])


class Order(unittest.TestCase):
    truth = [1.0, 1.2, 1.5, 1.9]

    def test_the_true_order_has_no_regret_and_all_pairs_right(self):
        s = search_of(random.Random(1), self.truth, self.truth)
        self.assertEqual(s.regret(0), 0)
        self.assertEqual(s.pairs(), ([1] * 6, 6))

    def test_the_reversed_order_has_all_pairs_wrong_and_the_regret_that_it_has(self):
        s = search_of(random.Random(1), self.truth[::-1], self.truth)
        self.assertEqual(s.pairs(), ([-1] * 6, 6))
        self.assertAlmostEqual(s.regret(0), 0.9, delta=0.1)
        self.assertAlmostEqual(s.fair_regret(0), 0.9, delta=0.1)

    def test_equal_strategies_differ_in_about_one_pair_of_twenty(self):
        rng, differ, pairs = random.Random(2), 0, 0
        for _ in range(200):
            some, n = search_of(rng, [1.0] * 5, [1, 2, 3, 4, 5], rounds=5, noise=0.1).pairs()
            differ, pairs = differ + len(some), pairs + n
        self.assertAlmostEqual(differ / pairs, 0.05, delta=0.02)

    def test_cross_fitted_regret_of_equal_strategies_is_none_and_the_plain_one_is_not(self):
        rng = random.Random(3)
        some = [search_of(rng, [1.0] * 6, [1.0] * 6, rounds=6, noise=0.1) for _ in range(300)]
        self.assertAlmostEqual(sum(s.fair_regret(0) for s in some) / len(some), 0, delta=0.01)
        self.assertGreater(sum(s.regret(0) for s in some) / len(some), 0.03)


class Coverage(unittest.TestCase):
    def test_a_true_interval_covers_nine_of_ten(self):
        rng, inside = random.Random(4), []
        for _ in range(300):
            p = {"step_s": 1, "step_low_s": math.exp(-0.1645), "step_high_s": math.exp(0.1645)}
            runs = [{"measured_s": math.exp(rng.gauss(0, 0.1)), "equal_speed_s": None} for _ in range(4)]
            inside += accuracy.Row(p, {}, runs).inside()
        self.assertAlmostEqual(sum(inside) / len(inside), 0.9, delta=0.03)

    def test_spread_between_rounds_is_that_of_the_rounds_not_of_the_configurations(self):
        rng = random.Random(5)
        rows = [accuracy.Row({}, {}, [{"measured_s": s * math.exp(rng.gauss(0, 0.1)), "equal_speed_s": None}
                                      for _ in range(4)]) for s in range(1, 300)]
        self.assertAlmostEqual(accuracy.spread_between_rounds(rows), 0.1645, delta=0.01)

    def test_the_interval_at_equal_speed_lacks_exactly_the_drift(self):
        total = 1.645 * math.hypot(0.05, 0.12)
        candidate = {"step_s": 2, "step_low_s": 2 * math.exp(-total), "step_high_s": 2 * math.exp(total)}
        found = judge.without_drift(candidate, {"arith": {"spread": 0.10}, "dram": {"spread": 0.14}})
        self.assertAlmostEqual(found["equal_high_s"], 2 * math.exp(1.645 * 0.05))
        self.assertAlmostEqual(found["equal_low_s"], 2 * math.exp(-1.645 * 0.05))


class Records(unittest.TestCase):
    def test_yardsticks_are_those_of_the_nearest_smaller_number_of_ranks(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = pathlib.Path(folder, "plan.db")
            db = sqlite3.connect(plan)
            db.execute("CREATE TABLE cost(part INTEGER, body TEXT)")
            db.execute("INSERT INTO cost VALUES(0, ?)", ("hplan-cost 2\n" + "\n".join(
                f"yardstick cpu arith r{r} | measured 0.02 40 calibrate | quiet:{r}e-5 mean:{r}.5e-5 spread:0.{r}" for r in (1, 2, 4)),))
            db.commit()
            db.close()
            self.assertEqual(judge.yardsticks(plan, 3), {"arith": {"quiet": 2e-5, "mean": 2.5e-5, "spread": 0.2}})

    def test_a_machine_that_is_half_as_fast_is_measured_as_if_it_were_not(self):
        run = {"measured_s": 4.0, "yardsticks": {"yard_arith_s": 3e-5}, "availability": 0.75}
        self.assertAlmostEqual(judge.own_equal_speed(run, {"arith": {"quiet": 1e-5, "mean": 1.5e-5}}), 1.5)

    def test_a_torn_last_line_is_left_out_and_written_after(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "book.jsonl")
            judge.Book(path).add("run", config=1)
            with path.open("a") as f:
                f.write('{"kind": "run", "con')
            judge.Book(path).add("run", config=2)
            self.assertEqual([r["config"] for r in judge.Book(path).rows("run")], [1, 2])


if __name__ == "__main__":
    unittest.main()
