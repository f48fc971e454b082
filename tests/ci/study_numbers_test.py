"""Numbers of the study: curves, where they cross and how certain that is, shares of time, costs, and the sentences made of them."""

import gzip
import math
import os
import tempfile
import unittest

from study import checkpoint, crossovers, curves, findings, loopback, parts, phases, policy, processor, records, words

KIB = 1024


def curve(seconds_by_size, certain=0.0):
    """Medians that are certain to this part of them, to each side."""
    return [curves.Point(size, seconds, seconds * (1 - certain), seconds * (1 + certain), seconds, seconds)
            for size, seconds in seconds_by_size.items()]


def pull(contender, size, seconds, **more):
    return {"contender": contender, "size": size, "rounds": 100, "p10_seconds": 0.8 * seconds, "p50_seconds": seconds,
            "p90_seconds": 1.2 * seconds, **more}


class CheckpointTest(unittest.TestCase):

    def test_what_a_training_loop_prints_is_read(self):
        said = checkpoint.of_training("""no checkpoint in /tmp/toy: from step 0
steps 0 to 100 of run 'toy', 64 MiB of state, checkpoints: non-blocking
step alone: median 74.12 ms, 90th percentile 137.66 ms, longest 181.21 ms (92)
step and checkpoint: median 123.70 ms, 90th percentile 157.23 ms, longest 164.21 ms (8, 1 left out)
all steps: 8.487 s, final checkpoint: 0.380 s, loss 0.8068
state after step 100: xxh64 d998daf630d9a5c1
""")
        self.assertEqual((said["steps"], said["total"], said["final"], said["taken"], said["left_out"]), (100, 8.487, 0.38, 8, 1))
        self.assertAlmostEqual(said["with_checkpoint"]["longest"], 0.16421)
        none = checkpoint.of_training("steps 0 to 9 of run 'a'\nstep alone: median 1.00 ms, 90th percentile 1.00 ms, longest 1.00 ms (9)\n"
                                      "step and checkpoint: none (0, 0 left out)\nall steps: 0.009 s, final checkpoint: 0.000 s, loss 1\n"
                                      "state after step 9: xxh64 0\n")
        self.assertIsNone(none["with_checkpoint"])

    def test_steps_that_take_too_long_in_every_turn_are_said(self):
        def run(name, total):
            return {"name": name, "results": {"steps": 100, "total": total, "alone": {"median": 0.01}, "with_checkpoint": None, "taken": 0,
                                              "left_out": 0, "state": "a"}}

        self.assertEqual(checkpoint.missed([run("none", 1), run("none", 1), run("non-blocking", 1.04), run("non-blocking", 1.2)]), [])
        self.assertEqual(len(checkpoint.missed([run("none", 1), run("non-blocking", 1.06)])), 1)


class CrossoverTest(unittest.TestCase):
    def test_a_table_takes_the_fastest_and_changes_where_curves_cross(self):
        def curve(*seconds):
            return [curves.exact(size, value) for size, value in zip((64, 256, 1024, 4096), seconds)]

        table = crossovers.best_table({"eager": curve(1, 2, 8, 32), "read": curve(4, 4, 4, 9), "write": curve(3, 3, 6, 8)})
        self.assertEqual([name for _, name in table], ["eager", "read", "write"])
        self.assertTrue(256 < table[0][0] < 1024 and 1024 < table[1][0] < 4096, table)
        self.assertEqual(crossovers.flag([(512, "eager"), (4096, "write")]), "eager:512,write")
        self.assertEqual(crossovers.flag(crossovers.best_table({"read": curve(1, 1, 1, 1)})), "read")

    # a + b x size: equal at (20 - 10) / (0.01 - 0.005) = 2,000 B.
    EAGER = {size: 10 + 0.01 * size for size in (256, 1024, 4096, 16384)}
    READ = {size: 20 + 0.005 * size for size in (256, 1024, 4096, 16384)}

    def test_it_lies_where_the_lines_cross_as_well_as_the_grid_allows(self):
        found = crossovers.find(curve(self.EAGER), curve(self.READ))
        self.assertAlmostEqual(found.at, 2000, delta=250)
        self.assertEqual(found.earliest, found.at)
        self.assertEqual(found.latest, found.at)

    def test_with_its_own_size_measured_it_is_exact(self):
        eager, read = ({**line, 2000: line[256] + (line[1024] - line[256]) * (2000 - 256) / 768} for line in (self.EAGER, self.READ))
        found = crossovers.find(*(curve(dict(sorted(line.items()))) for line in (eager, read)))
        self.assertAlmostEqual(found.at, 2000, delta=1e-6)

    def test_uncertain_medians_make_it_uncertain_on_both_sides(self):
        found = crossovers.find(curve(self.EAGER, 0.05), curve(self.READ, 0.05))
        self.assertLess(found.earliest, found.at)
        self.assertGreater(found.latest, found.at)
        wider = crossovers.find(curve(self.EAGER, 0.1), curve(self.READ, 0.1))
        self.assertLess(wider.earliest, found.earliest)
        self.assertGreater(wider.latest, found.latest)

    def test_so_uncertain_that_it_may_be_anywhere(self):
        found = crossovers.find(curve(self.EAGER, 0.9), curve(self.READ, 0.9))
        self.assertEqual((found.earliest, found.latest), (0, math.inf))
        self.assertIn("(below 256 B to above 16 KiB)", crossovers.text(found))

    def test_faster_everywhere_and_faster_nowhere(self):
        slow, fast = {64: 2.0, 1024: 3.0}, {64: 1.0, 1024: 2.0}
        self.assertEqual(crossovers.text(crossovers.find(curve(slow), curve(fast))), "at all sizes from 64 B")
        self.assertEqual(crossovers.text(crossovers.find(curve(fast), curve(slow))), "at no size to 1 KiB")

    def test_faster_in_between_only_does_not_count(self):
        first, second = {1: 2.0, 2: 2.0, 4: 2.0, 8: 2.0}, {1: 3.0, 2: 1.0, 4: 3.0, 8: 1.0}
        self.assertGreater(crossovers.find(curve(first), curve(second)).at, 4)
        second[8] = 3.0
        self.assertEqual(crossovers.find(curve(first), curve(second)).at, math.inf)

    def test_equal_is_not_faster(self):
        found = crossovers.find(curve({1: 1.0, 2: 1.0, 4: 2.0}), curve({1: 1.0, 2: 1.0, 4: 1.0}))
        self.assertEqual(found.at, 2)

    def test_without_sizes_in_common_there_is_none(self):
        self.assertIsNone(crossovers.find(curve({1: 1.0, 2: 1.0}), curve({2: 1.0, 4: 1.0})))
        self.assertEqual(crossovers.text(None), "not measured")


class CurvesTest(unittest.TestCase):

    def test_the_interval_of_a_median_narrows_with_the_root_of_the_rounds(self):
        few, many = (curves.of_summary(64, rounds, 8.0, 10.0, 12.0) for rounds in (25, 100))
        self.assertAlmostEqual(few.high - few.median, 2 * (many.high - many.median))
        self.assertAlmostEqual(many.median - many.low, 1.96 * 1.2533 * 4 / 2.5631 / 10)

    def test_the_interval_does_not_leave_the_percentiles(self):
        point = curves.of_summary(64, 1, 9.9, 10.0, 10.1)
        self.assertEqual((point.low, point.high), (9.9, 10.1))

    def test_runs_are_joined_from_the_least_to_the_most(self):
        runs = [{"results": [pull("pull read", 64, seconds), pull("tcp stream", 64, 1.0)]} for seconds in (1.0, 3.0, 2.0)]
        found = curves.of_pulls(runs)
        self.assertEqual(list(found), ["read", "tcp"])
        point = found["read"][0]
        self.assertEqual(point.median, 2.0)
        self.assertEqual(point.low, curves.of_summary(64, 100, 0.8, 1.0, 1.2).low)
        self.assertEqual(point.high, curves.of_summary(64, 100, 2.4, 3.0, 3.6).high)

    def test_sockets_of_the_cluster_are_told_apart(self):
        rows = [{"pattern": pattern, "size_bytes": 64, "protocol": protocol, "variant": variant, "p10_seconds": 1, "p50_seconds": 2,
                 "p90_seconds": 3, "interval_seconds": [1.5, 2.5]}
                for pattern, protocol, variant in (("one-to-one", "read", "arena"), ("one-to-one", "socket", "original"),
                                                   ("one-to-one", "socket", "tuned"), ("all-to-all", "eager", "arena"))]
        found = curves.of_cluster([{"results": {"results": rows}}], "one-to-one")
        self.assertEqual(list(found), ["read", "socket-original", "socket-tuned"])
        self.assertEqual(found["read"], [curves.Point(64, 2, 1.5, 2.5, 1, 3)])


class PhasesTest(unittest.TestCase):
    SPENT = dict(zip(phases.PHASES, (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)))

    def test_each_phase_belongs_to_one_cause(self):
        self.assertEqual(sorted(phase for named in phases.CAUSES.values() for phase in named), sorted(phases.PHASES))

    def test_shares_are_all_of_the_time(self):
        shares = phases.shares(self.SPENT)
        self.assertAlmostEqual(sum(shares.values()), 1)
        self.assertAlmostEqual(shares["communication"], 11 / 55)
        self.assertEqual(sum(phases.shares(dict.fromkeys(phases.PHASES, 0)).values()), 0)

    def test_runs_are_averaged_and_what_is_no_pull_is_left_out(self):
        runs = [{"results": [pull("pull read", 64, 1.0, mean_seconds_by_phase=dict.fromkeys(phases.PHASES, value)), pull("memcpy", 64, 1.0)]}
                for value in (1, 3)]
        self.assertEqual(phases.mean_by_phase(runs), {("read", 64): dict.fromkeys(phases.PHASES, 2)})

    def test_sentences_name_the_cause_that_is_largest_in_the_numbers(self):
        spent = {**dict.fromkeys(phases.PHASES, 0.0), "directory": 3e-6, "data": 1e-6}
        said = findings.named_causes({("read", 64): spent})
        self.assertIn("metadata is 75 % (read, 64 B)", said[0])
        self.assertEqual(said[1], "Of 1 cases (protocol and size) the largest share is: metadata in 1.")
        self.assertEqual(findings.largest_causes({("read", 64): spent}), ["read at 64 B: metadata 75 %, communication 25 %."])
        self.assertEqual(findings.named_causes({}), [])


class FindingsTest(unittest.TestCase):

    def test_the_hybrid_is_judged_by_the_best_of_the_same_size(self):
        found = {"eager": curve({64: 1.0, 1024: 4.0}), "read": curve({64: 2.0, 1024: 2.0}), "auto": curve({64: 1.0, 1024: 3.0})}
        self.assertIn("at most 50 % longer", findings.hybrid(found, "auto")[0])
        self.assertIn("(1 KiB); at 1 of 2 sizes it is slower beyond", findings.hybrid(found, "auto")[0])
        found["auto"] = curve({64: 1.0, 1024: 3.0}, certain=0.5)
        self.assertIn("at 0 of 2 sizes", findings.hybrid(found, "auto")[0])
        found["auto"] = curve({64: 0.9, 1024: 2.0})
        self.assertIn("as fast as the best", findings.hybrid(found, "auto")[0])
        self.assertEqual(findings.hybrid({"auto": found["auto"]}, "auto"), [])

    def test_peers_are_compared_at_the_ends_of_the_curves(self):
        found = {"auto": curve({64: 4.0, 1024: 4.0}), "redis": curve({64: 1.0, 1024: 8.0})}
        said = findings.against_peers(found)
        self.assertEqual(said[0], "The hybrid takes 4.00 times as long as a Redis GET at 64 B, 0.50 times at 1 KiB.")
        self.assertTrue(said[1].startswith("The hybrid is faster than a Redis GET from "))


class ProcessorTest(unittest.TestCase):
    RUNS = {name: [{"results": [pull("pull read", 1000, 1.0, processor_seconds_here=2e-6 * factor, processor_seconds_there=1e-6 * factor),
                                pull("memcpy", 1000, 1.0)]}] for name, factor in (("busy", 5), ("event", 1))}

    def test_both_nodes_are_added_and_scaled_to_a_gigabyte(self):
        rows = list(processor.rows(self.RUNS))
        self.assertEqual([row[:3] for row in rows], [("busy", "read", 1000), ("event", "read", 1000)])
        self.assertAlmostEqual(rows[1][3], 2)
        self.assertAlmostEqual(rows[1][5], 3)

    def test_the_least_and_the_most(self):
        (least, _, us), (most, _, _) = processor.cheapest(self.RUNS, 1000)
        self.assertEqual((least, most), ("event", "busy"))
        self.assertAlmostEqual(us, 3)
        self.assertIsNone(processor.cheapest(self.RUNS, 64))


def tuned(*crossovers):
    return {"name": "tok tune", "results": {"table": [{"protocol": "eager"}], "measured": {"sizes": [{"bytes": 1}, {"bytes": 99}], "crossovers": [
        {"below": "eager", "above": above, "bytes": (least + most) // 2, "least_bytes": least, "most_bytes": most} for above, least, most in crossovers]}}}


def hybrid(size, ratio, low, high):
    return pull("pull auto", size, 1.0, against_best={"best": "read", "ratio": ratio, "interval": [low, high]})


class PolicyTest(unittest.TestCase):

    def test_it_is_missed_where_the_interval_lies_above(self):
        def of(*ratios):
            return policy.missed([{"name": "against the best", "results": [hybrid(KIB, *ratios)]}])

        self.assertEqual(of(1.2, 1.04, 1.3), [])
        self.assertRegex(of(1.2, 1.06, 1.3)[0], "at 1 KiB .* 1.060 to 1.300 times as long as read")

    def test_of_several_runs_the_middle_one_counts(self):
        runs = [{"name": "against the best", "results": [hybrid(KIB, ratio, ratio - 0.1, ratio + 0.1)]} for ratio in (1.5, 1.0, 1.1)]
        self.assertEqual(policy.against_best(runs)[KIB].ratio, 1.1)

    def test_a_table_is_found_again_where_intervals_meet(self):
        first = tuned(("write", 10, 20))
        self.assertEqual(policy.missed([first, tuned(("write", 20, 30))]), [])
        for other in (tuned(("write", 21, 30)), tuned(("read", 10, 20)), tuned()):
            self.assertEqual(len(policy.missed([first, other])), 1)

    def test_a_crossover_that_may_be_none_need_not_be_found(self):
        for doubtful in (tuned(("write", 1, 20)), tuned(("write", 10, 99))):
            self.assertEqual(policy.missed([doubtful, tuned()]), [])
            self.assertEqual(policy.missed([tuned(), doubtful]), [])
            self.assertEqual(len(policy.missed([doubtful, tuned(("write", 30, 40), ("read", 50, 60))])), 1)

    def test_the_cost_of_learning_is_bounded(self):
        def of(explored, nanoseconds):
            text = ('{"metrics": {"engine0_adaptive_pulls_total": 60, "engine1_adaptive_pulls_total": 40, "engine0_adaptive_explored_total": %d, '
                    '"engine0_adaptive_nanoseconds_total": 1000, "engine0_adaptive_explored_nanoseconds_total": %d}}' % (explored, nanoseconds))
            return policy.missed([{"name": "adaptive", "results": policy.of_stat(text)}])

        self.assertEqual(of(2, 10), [])
        self.assertEqual([len(of(3, 10)), len(of(2, 11))], [1, 1])
        with self.assertRaisesRegex(ValueError, "no pull"):
            policy.of_stat('{"metrics": {"engine0_adaptive_pulls_total": 0}}')


class PeersTest(unittest.TestCase):
    UCX = ("+---+\n[thread 0]  37  14009.836 13945.296 13945.296        0.00       0.00          72          72\n"
           "Final:                  1000      7.440   402.319  2605.966        0.15       2.00        2486         384\n")

    def test_the_last_row_of_ucx(self):
        for text in (self.UCX, self.UCX.replace("Final:", "      ")):
            self.assertEqual(loopback.of_ucx(text), {"p50_seconds": 7.44e-6, "bytes_per_second": 2 << 20})

    def test_what_is_no_answer_is_shown(self):
        with self.assertRaisesRegex(loopback.Unreadable, "no such device"):
            loopback.of_ucx("no such device")
        with self.assertRaisesRegex(loopback.Unreadable, "unable to connect"):
            loopback.of_iperf3({"error": "unable to connect", "end": {}})

    def test_what_arrived_counts_for_iperf3(self):
        self.assertEqual(loopback.of_iperf3({"end": {"sum_received": {"bits_per_second": 80.0}}}), 10)

    def test_rounds_are_put_together(self):
        runs = [{"results": [{"program": "iperf3", "what": "a", "unit": "bytes_per_second", "value": value}]} for value in (1.0, 3.0, 2.0)]
        self.assertEqual([row[:5] for row in loopback.rows(runs)], [("iperf3", "a", 2.0, 1.0, 3.0)])


class SweepTest(unittest.TestCase):

    def sweep(self, exit_code):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.mkdir(os.path.join(folder.name, "0"))
        with open(os.path.join(folder.name, "points.json"), "w", encoding="utf-8") as file:
            file.write('[{"folder": "0", "exit_code": %d, "set": ["topology.host_link.rate=200Gb/s", "workload.0.protocol=read", '
                       '"workload.0.senders=16", "workload.0.bytes=2KiB"]}]' % exit_code)
        with open(os.path.join(folder.name, "0", "summary.json"), "w", encoding="utf-8") as file:
            file.write('{"groups": {"gets": {"completion_us": {"mean": 25, "p99": 30}, "goodput_gbps": 1.5}}}')
        return folder.name

    def test_a_point_becomes_a_row(self):
        rows = parts.points_of(self.sweep(0))
        self.assertEqual(rows, [{"rate": "200Gb/s", "senders": 16, "protocol": "read", "size": 2048, "mean_seconds": 25e-6,
                                 "p99_seconds": 30e-6, "gigabits_per_second": 1.5}])
        self.assertEqual(curves.of_sweep([{"results": rows}], senders=1), {})
        self.assertEqual(curves.of_sweep([{"results": rows}], senders=16)["read"][0].median, 25e-6)

    def test_a_point_that_failed_is_trouble(self):
        with self.assertRaisesRegex(ValueError, "protocol=read.* ended with 4"):
            parts.points_of(self.sweep(4))


class RecordsTest(unittest.TestCase):

    def test_what_is_no_record_says_how_to_get_one(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertIsNone(records.read(folder, "pulls"))
            for text in ("{", "[]", '{"part": "fabric"}'):
                with gzip.open(records.path_of(folder, "pulls"), "wt", encoding="utf-8") as file:
                    file.write(text)
                with self.assertRaisesRegex(records.Malformed, "--only pulls"):
                    records.read(folder, "pulls")

    def test_the_state_follows_from_trouble_and_runs(self):
        states = [records.make("pulls", "quick", {}, runs, trouble)["state"] for runs, trouble in (([1], []), ([1], ["x"]), ([], ["x"]))]
        self.assertEqual(states, ["measured", "partly", "failed"])

    def test_what_is_written_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            record = records.make("pulls", "quick", {"machine": "m"}, [], ["x"])
            records.write(folder, record)
            self.assertEqual(records.read(folder, "pulls"), record)
            self.assertEqual(os.listdir(folder), ["pulls.json.gz"])

    def test_places_of_the_machine_are_named(self):
        self.assertEqual(records.without_places({"a": ["/home/x/bin/pull", 1]}, [("/home/x/bin", "bazel-bin")]), {"a": ["bazel-bin/pull", 1]})


class WordsTest(unittest.TestCase):

    def test_units(self):
        self.assertEqual([words.size(1), words.size(16 * KIB), words.size(3 << 19)], ["1 B", "16 KiB", "1.5 MiB"])
        self.assertEqual(words.rate(1020 << 20), "1020 MiB/s")
        self.assertEqual([words.time(2.5e-9), words.time(65.4e-6), words.time(0.1), words.time(1200)], ["2 ns", "65.4 us", "100 ms", "1200 s"])
        self.assertEqual([words.percent(0.031), words.percent(0.75), words.listing(["a", "b", "c"])], ["3.1 %", "75 %", "a, b and c"])

    def test_a_cell_cannot_end_its_column(self):
        self.assertEqual(words.table(["a", "b"], [["x|y", 1]]), "| a | b |\n| --- | ---: |\n| x\\|y | 1 |")


if __name__ == "__main__":
    unittest.main()
