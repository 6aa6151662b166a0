"""pdf_text.py - pages of a PDF as pixels, and where its text stands: the ground truth of the two networks for text.

The document is Debian's policy manual (package debian-policy); poppler-utils renders it. Exit 77 with the reason where one of them
is missing. Boxes are (x0, y0, x1, y1)."""
import gzip
import pathlib
import re
import subprocess
import tempfile

from PIL import Image

from fetch import skip

POLICY = pathlib.Path("/usr/share/doc/debian-policy/policy.pdf.gz")
HIERARCHY = pathlib.Path("/usr/share/doc/debian-policy/fhs/fhs-3.0.pdf.gz")  # another document, to calibrate on
BOX = r' xMin="([\d.-]+)" yMin="([\d.-]+)" xMax="([\d.-]+)" yMax="([\d.-]+)"'
Image.MAX_IMAGE_PIXELS = None  # PIL takes large images for attacks


class Document:
    def __init__(self, packed, dpi):
        if not packed.exists():
            skip(f"no {packed}; on Debian: apt install debian-policy")
        self.dpi = dpi
        self._folder = tempfile.TemporaryDirectory()
        self._pdf = pathlib.Path(self._folder.name) / "document.pdf"
        self._pdf.write_bytes(gzip.decompress(packed.read_bytes()))
        self._text = self._run("pdftotext", "-bbox-layout", self._pdf, "-").decode().split("<page ")[1:]
        self.pages = len(self._text)

    @staticmethod
    def _run(*command):
        try:
            return subprocess.run(command, check=True, capture_output=True, timeout=300).stdout
        except FileNotFoundError:
            skip(f"no {command[0]}; on Debian: apt install poppler-utils")

    def boxes(self, page, what):
        """[(box in points, text)] of the page's words or lines; pages count from 1."""
        found = []
        for *box, inside in re.findall(f"<{what}{BOX}>(.*?)</{what}>", self._text[page - 1], re.S):
            text = " ".join(re.sub(r"<[^>]*>", " ", inside).split())
            found.append(([float(v) for v in box], text))
        return found

    def pixels(self, box):
        """A box in pixels, not rounded."""
        return [v * self.dpi / 72 for v in box]

    def image(self, page):
        """The page in grey."""
        to = pathlib.Path(self._folder.name) / "page"
        self._run("pdftoppm", "-r", str(self.dpi), "-gray", "-singlefile", "-f", str(page), "-l", str(page), self._pdf, to)
        with Image.open(to.with_suffix(".pgm")) as image:
            return image.copy()
