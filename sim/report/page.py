"""The HTML page: one file, no scripts, nothing loaded from elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.sweep.store import write_whole

TEMPLATE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
  h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; }
  table { border-collapse: collapse; font-size: .9rem; } th, td { padding: .2rem .7rem; text-align: right; }
  th:first-child, td:first-child { text-align: left; } thead th { border-bottom: 1px solid #888; }
  tbody tr:nth-child(even) { background: #f5f5f5; } .scroll { overflow-x: auto; }
  img { max-width: 100%; } figcaption, .note { color: #555; font-size: .9rem; } figure { margin: 1.5rem 0; }
  pre { background: #f5f5f5; padding: 1rem; overflow-x: auto; font-size: .85rem; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
<p class="note">{{ subtitle }}</p>
{% for note in notes %}<p class="note">Note: {{ note }}</p>
{% endfor %}
{% for table in tables %}<h2>{{ table.title }}</h2>
{% if table.caption %}<p class="note">{{ table.caption }}</p>
{% endif %}<div class="scroll"><table>
<thead><tr>{% for name in table.columns %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in table.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}</tbody>
</table></div>
{% endfor %}
{% for figure in figures %}<figure>
<h2>{{ figure.title }}</h2>
<img src="{{ figure.address }}" alt="{{ figure.title }}">
<figcaption>{{ figure.caption }}</figcaption>
</figure>
{% endfor %}
<h2>{{ source_title }}</h2>
<pre>{{ source }}</pre>
</body>
</html>
"""


def table(title: str, columns: list[str], rows: list[list[str]], caption: str = "") -> dict[str, Any]:
    """A table of the page, as plain text cells."""
    return {"title": title, "columns": columns, "rows": rows, "caption": caption}


def write_page(folder: Path, **content: Any) -> Path:
    """Fill the template and write `report.html`. Every text is escaped."""
    from jinja2 import Environment, StrictUndefined

    template = Environment(autoescape=True, undefined=StrictUndefined).from_string(TEMPLATE)
    write_whole(folder / "report.html", template.render(**content).encode("utf-8"))
    return folder / "report.html"
