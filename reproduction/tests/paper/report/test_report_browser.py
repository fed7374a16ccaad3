"""The page in a browser: nothing to complain about, no scrolling sideways on a phone, prints."""

import re

import pytest

WIDTH = 375  # of a small phone
MEASURE = """<script>
addEventListener("load", () => {
  const root = document.documentElement;
  const wide = [...document.querySelectorAll("body *")].filter(
    (node) => !node.closest(".scroll") && node.getBoundingClientRect().right > innerWidth + 0.5
  );
  root.dataset.measured = [innerWidth, root.scrollWidth, wide.length].join(" ");
});
</script></body>"""


@pytest.mark.slow
def test_no_complaints_and_nothing_sought_elsewhere(page, browser, tmp_path):
    seen = browser(tmp_path, "--enable-logging=stderr", "--v=0", "--dump-dom", page=page)
    assert "CONSOLE" not in seen.stderr
    assert "Figure 10" in seen.stdout


@pytest.mark.deep
def test_it_fits_a_phone(page, browser, tmp_path):
    """Headless windows are not narrower than 500, so the page is put into a frame."""
    copy = tmp_path / "copy.html"
    copy.write_text(page.read_text("utf-8").replace("</body>", MEASURE), encoding="utf-8")
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe src="copy.html" width="{WIDTH}" height="800" style="border:0"></iframe>'
        "<script>addEventListener('load', () => { document.title = "
        "frames[0].document.documentElement.dataset.measured; });</script>",
        encoding="utf-8",
    )
    seen = browser(tmp_path, "--allow-file-access-from-files", "--dump-dom", page=frame)
    inner, scrolled, wide = map(int, re.search(r"<title>(.*?)</title>", seen.stdout)[1].split())
    assert inner == WIDTH
    assert scrolled <= WIDTH
    assert wide == 0


@pytest.mark.deep
def test_it_prints(page, browser, tmp_path):
    pdf = tmp_path / "report.pdf"
    browser(tmp_path, f"--print-to-pdf={pdf}", "--no-pdf-header-footer", page=page)
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) >= 5
