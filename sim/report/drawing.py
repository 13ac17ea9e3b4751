"""What all figures share: size, colours that colour-blind readers can tell apart, and how they are saved."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.sweep.store import write_whole

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


class Album:
    """The figures of one report, in order: title, text beneath, and the PNG as a data address."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "figures"
        self.figures: list[dict[str, str]] = []

    @contextmanager
    def figure(self, name: str, title: str, caption: str, width: float = 7.0, height: float = 3.6) -> Iterator[Any]:
        """Axes to draw on, saved as `figures/NAME.png` when the block ends. No global state, no display."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_prop_cycle(color=COLOURS)
        yield axes
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=120)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_whole(self.folder / f"{name}.png", buffer.getvalue())
        address = "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
        self.figures.append({"title": title, "caption": caption, "address": address})
