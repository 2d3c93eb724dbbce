import datetime
import unittest

import paths  # noqa: F401

try:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
except ImportError:
    matplotlib = None

from atoll_kernel.charts.boxes import watch_box_plots
from atoll_kernel.charts.figure import describe_figure


@unittest.skipUnless(matplotlib, "matplotlib is not installed")
class Charts(unittest.TestCase):
    def setUp(self):
        watch_box_plots()
        self.figure, self.axes = plt.subplots()

    def tearDown(self):
        plt.close("all")

    def test_lines(self):
        self.axes.plot([1, 2, 3], [4, 5, float("nan")], label="speed")
        self.axes.plot([1, 2], [0, 1])
        self.axes.set(title="Run", xlabel="Time (s)", ylabel="Distance")
        self.axes.set_yscale("symlog")
        chart = describe_figure(self.figure)
        self.assertEqual(
            [chart[name] for name in ("type", "title", "x_label", "x_unit", "y_unit", "y_scale")],
            ["line", "Run", "Time (s)", "s", None, "symlog"],
        )
        self.assertEqual(
            chart["elements"],
            [
                {"label": "speed", "points": [[1, 4.0], [2, 5.0], [3, None]]},
                {"label": "Line 1", "points": [[1, 0], [2, 1]]},
            ],
        )

    def test_dates(self):
        self.axes.plot([datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)], [1, 2])
        chart = describe_figure(self.figure)
        self.assertEqual(chart["x_scale"], "datetime")
        self.assertEqual(chart["elements"][0]["points"][0], ["2024-01-01", 1])
        self.assertTrue(chart["x_ticks"][0].startswith("2024-01-01T"))

    def test_scatter(self):
        self.axes.scatter([1, 2], [3, 4], label="dots")
        chart = describe_figure(self.figure)
        self.assertEqual(chart["type"], "scatter")
        self.assertEqual(chart["elements"], [{"label": "dots", "points": [[1.0, 3.0], [2.0, 4.0]]}])

    def test_bars_with_groups(self):
        self.axes.bar(["a", "b"], [1, 2], label="first")
        self.axes.bar(["a", "b"], [3, 4], bottom=[1, 2], label="second")
        chart = describe_figure(self.figure)
        self.assertEqual(chart["type"], "bar")
        found = [(bar["label"], bar["group"], bar["value"]) for bar in chart["elements"]]
        self.assertEqual(
            found,
            [("a", "first", 1), ("b", "first", 2), ("a", "second", 3), ("b", "second", 4)],
        )

    def test_horizontal_bars_and_histograms(self):
        self.axes.barh(["a", "b"], [5, 6])
        chart = describe_figure(self.figure)
        self.assertEqual([(bar["label"], bar["value"]) for bar in chart["elements"]], [("a", 5), ("b", 6)])
        plt.figure()
        plt.hist([1, 1, 2], bins=2)
        chart = describe_figure(plt.gcf())
        self.assertEqual([bar["value"] for bar in chart["elements"]], [2.0, 1.0])

    def test_pie(self):
        self.axes.pie([1, 3], labels=["x", "y"])
        chart = describe_figure(self.figure)
        self.assertEqual(chart["type"], "pie")
        self.assertEqual(
            [(wedge["label"], round(wedge["angle"])) for wedge in chart["elements"]], [("x", 90), ("y", 270)]
        )

    def test_boxes(self):
        self.axes.boxplot([[1, 2, 3, 4, 5, 50]], labels=["only"])
        chart = describe_figure(self.figure)
        self.assertEqual(chart["type"], "box_and_whisker")
        box = chart["elements"][0]
        self.assertEqual((box["label"], box["median"], box["outliers"]), ("only", 3.5, [50]))

    def test_several_axes_and_none(self):
        self.assertEqual(describe_figure(self.figure)["type"], "unknown")
        figure, (left, right) = plt.subplots(1, 2)
        figure.suptitle("Both")
        left.plot([1], [2])
        right.bar(["a"], [1])
        chart = describe_figure(figure)
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "Both"))
        self.assertEqual([part["type"] for part in chart["elements"]], ["line", "bar"])
