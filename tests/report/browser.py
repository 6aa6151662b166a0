#!/usr/bin/env python3
"""browser.py PAGE... - opens pages of `hplan report` in headless Chromium by way of chromedriver (the W3C's WebDriver
protocol). At three widths: all sections are there, in order; nothing is wider than the window, cut or on top of
another; the console is empty. Then the timeline answers to keys, the search and the pointer, and no name ran."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

SECTIONS = ["answer", "candidates", "timeline", "memory", "scaling", "pareto", "error", "basis"]

# what is wrong with the layout, as a list of words
LAYOUT = r"""
const wrong = [], wide = window.innerWidth + 1;
if (document.documentElement.scrollWidth > window.innerWidth) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
for (const e of document.querySelectorAll("body *")) {
  const box = e.getBoundingClientRect();
  if (box.width && (box.right > wide || box.left < -1)) wrong.push(`${e.tagName} reaches from ${box.left} to ${box.right}: ${e.textContent.slice(0, 60)}`);
  if (["TD", "TH", "P", "LI", "CODE", "H1"].includes(e.tagName) && e.scrollWidth > e.clientWidth + 1 && e.clientWidth) wrong.push(`cut: ${e.textContent.slice(0, 60)}`);
}
for (const svg of document.querySelectorAll("svg")) {
  const texts = [...svg.querySelectorAll("text")].map(t => [t.textContent, t.getBoundingClientRect()]);
  const frame = svg.getBoundingClientRect();
  texts.forEach(([name, a], i) => {
    if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 1) wrong.push(`text beyond its chart: ${name}`);
    for (const [other, b] of texts.slice(i + 1)) if (a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2) wrong.push(`${name} lies on ${other}`);
  });
}
return wrong;
"""

# the timeline's answers: [name, whether it holds]
TIMELINE = r"""
const canvas = document.querySelector("#timeline canvas"), tip = document.querySelector("#timeline .tip");
const search = document.querySelector("#timeline input"), found = document.querySelector("#timeline output");
canvas.scrollIntoView();
const box = canvas.getBoundingClientRect(), holds = [], picture = () => canvas.toDataURL();
const data = JSON.parse(document.getElementById("data").textContent).timeline;
const key = name => canvas.dispatchEvent(new KeyboardEvent("keydown", {key: name, cancelable: true}));
const whole = picture();
const colours = new Set(new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer));
holds.push(["the canvas is drawn in colours", colours.size > 20]);
key("+");
const near = picture();
holds.push(["+ zooms", near !== whole]);
key("ArrowRight");
holds.push(["an arrow moves", picture() !== near]);
key("0");
holds.push(["0 shows all again", picture() === whole]);
document.querySelector("#timeline button").click();
holds.push(["the button zooms as + does", picture() === near]);
key("0");
canvas.focus();
canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, clientX: box.left + box.width / 2, clientY: box.top + 60, cancelable: true}));
holds.push(["the wheel zooms", picture() !== whole]);
key("0");
const labels = data.sides.flatMap(s => s.rows.flatMap(r => r.spans.filter((_, i) => i % 4 === 0).map(t => s.tasks[t][0])));
const words = labels[0].split(" ")[0].toLowerCase(), expected = labels.filter(l => l.toLowerCase().includes(words)).length;
search.value = words;
search.dispatchEvent(new Event("input"));
holds.push([`the search finds ${words}: ${found.textContent}, at least ${expected}`, parseInt(found.textContent, 10) >= expected]);
holds.push(["others fade", picture() !== whole || expected === labels.length]);
search.value = "";
search.dispatchEvent(new Event("input"));
let tips = new Set();
for (let y = 30; y < box.height; y += 5) for (let x = 125; x < box.width - 15; x += 7) {
  canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + x, clientY: box.top + y}));
  if (!tip.hidden) tips.add(tip.innerText);
}
tips = [...tips].join("\n");
const waits = data.sides.some(s => s.rows.some(r => r.waits.length));
for (const word of ["rank 0", "queue", "predicted cost: ", ...(waits ? ["waits "] : [])]) holds.push([`a tip says ${word}`, tips.includes(word)]);
if (data.sides.some(s => s.tasks.some(t => t[2] === 1))) {
  for (const word of ["send queue", "micro-batch", "layer "]) holds.push([`a tip says ${word}`, tips.includes(word)]);
}
return holds;
"""


class Driver:
    def __init__(self, folder):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            port = re.search(r"started successfully on port (\d+)", line)
            if port:
                break
        self.root = f"http://127.0.0.1:{port.group(1)}/session"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
        self.root += "/" + self.ask("POST", "", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags}, "goog:loggingPrefs": {"browser": "ALL"}}}})["sessionId"]

    def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.root + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.load(answer)["value"]

    def run(self, script):
        return self.ask("POST", "/execute/sync", {"script": script, "args": []})

    def console(self):
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"})]

    def close(self):
        self.ask("DELETE", "")
        self.process.terminate()
        self.process.wait()


def check(driver, path):
    for width in (800, 1280, 1920):
        driver.ask("POST", "/window/rect", {"width": width, "height": 1000})
        start = time.monotonic()
        driver.ask("POST", "/url", {"url": pathlib.Path(path).resolve().as_uri()})
        if driver.run("return document.documentElement.dataset.ready") != "yes":
            yield f"{width}: the page's script did not end"
        took = time.monotonic() - start
        sections = driver.run("return [...document.querySelectorAll('main section')].map(s => [s.id, s.children.length])")
        if [name for name, _ in sections] != SECTIONS or any(children < 2 for _, children in sections):
            yield f"{width}: its sections are {sections}"
        yield from (f"{width}: {words}" for words in driver.run(LAYOUT))
        print(f"{path} at {driver.run('return window.innerWidth')} pixels: opened in {took:.2f} s")
    yield from (f"timeline: not so: {name}" for name, holds in driver.run(TIMELINE) if not holds)
    if driver.run("return 'owned' in window || document.querySelectorAll('img, script:not([id]), style').length !== 2"):
        yield "a name became markup or script"
    yield from (f"console: {message}" for message in driver.console())


def main():
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(folder)
        try:
            for path in sys.argv[1:]:
                wrong += [f"{path}: {words}" for words in check(driver, path)]
        finally:
            driver.close()
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
