"""For tests of the page: a headless Chromium, and what the page says in it."""

import base64
import contextlib
import fcntl

import harness
from harness import need, wait_until

FLAGS = """--headless=new --remote-debugging-pipe --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage --disable-extensions
    --disable-default-apps --renderer-process-limit=1 --hide-scrollbars --force-device-scale-factor=1 --no-proxy-server""".split()

# Before the scripts of each document: counts what its policy forbids.
WATCH = "addEventListener('securitypolicyviolation', (e) => { (window.violations = window.violations || []).push(e.violatedDirective); });"


@contextlib.contextmanager
def chromium():
    """A browser for Tab(), whose start takes longer than most tests. One at a time runs on this machine, because one needs
    much memory."""
    programs = need("chromium"), need("chromedriver")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.utils import is_connectable

    class Loopback(Service):
        """Asks for no name: a minimal root has no /etc/hosts with localhost."""

        def is_connectable(self):
            return is_connectable(self.port, "127.0.0.1")

        @property
        def service_url(self):
            return f"http://127.0.0.1:{self.port}"

    directory = harness.BUILD / "tests"
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / "browser.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        options = webdriver.ChromeOptions()
        options.binary_location = str(programs[0])
        for flag in FLAGS:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(service=Loopback(str(programs[1])), options=options)
        try:
            driver.set_script_timeout(harness.TIMEOUT_S)
            yield driver
        finally:
            driver.quit()


class Tab:
    """with Tab(driver) as browser: ...   A new tab of chromium(), of which one is open at a time."""

    def __init__(self, driver, width=1400, height=900, theme="light"):
        self.driver, self.size, self.theme = driver, (width, height), theme

    def __enter__(self):
        self.driver.get_log("browser")  # of earlier tabs
        self.driver.switch_to.new_window("tab")
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        self.resize(*self.size)
        self.set_theme(self.theme)
        return self

    def __exit__(self, *exception):
        first, *others = self.driver.window_handles
        for window in others:
            self.driver.switch_to.window(window)
            self.driver.close()
        self.driver.switch_to.window(first)

    def resize(self, width, height, scale=1):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False})

    def set_theme(self, theme):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                    {"features": [{"name": "prefers-color-scheme", "value": theme}]})

    def open(self, url):
        self.driver.get(str(url))
        return self

    def js(self, text, *arguments):
        """Returns the value of an expression."""
        return self.driver.execute_script(f"return {text}", *arguments)

    def wait(self, expression, what=None):
        return wait_until(lambda: self.js(expression), what or expression, pause=0.1)

    def idle(self):
        """Waits until the view is drawn."""
        self.wait("window.buscap && buscap.model.view && !buscap.model.isLoading && !document.hidden"
                  " && !!(buscap.model.events || buscap.model.error)", "the picture is drawn")
        self.driver.execute_async_script("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))")

    def redraw(self):
        """Draws again, after a change of the model."""
        self.driver.execute_script("document.querySelector('#theme').dispatchEvent(new Event('change'))")
        self.idle()

    def model(self, member):
        return self.js(f"buscap.model.{member}")

    def view(self):
        """Returns (from, to) in ns since 1970."""
        return tuple(int(ns) for ns in self.js("[String(buscap.model.view.from), String(buscap.model.view.to)]"))

    def text(self, selector):
        return self.js("document.querySelector(arguments[0]).innerText", selector)

    def click(self, selector):
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).send_keys(*keys).perform()
        self.idle()

    def chord(self, held, key):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver, duration=0).key_down(held).send_keys(key).key_up(held).perform()
        self.idle()

    def drag(self, selector, start, end):
        """Drags from a point of an element to another, in pixels from its upper left corner."""
        from selenium.webdriver.common.action_chains import ActionChains

        box = self.js("(({x, y}) => [x, y])(document.querySelector(arguments[0]).getBoundingClientRect())", selector)
        chain = ActionChains(self.driver, duration=0)
        (pointer := chain.w3c_actions.pointer_action).move_to_location(int(box[0] + start[0]), int(box[1] + start[1]))
        pointer.pointer_down()
        pointer.move_to_location(int(box[0] + (start[0] + end[0]) / 2), int(box[1] + (start[1] + end[1]) / 2))
        pointer.move_to_location(int(box[0] + end[0]), int(box[1] + end[1]))
        pointer.pointer_up()
        chain.perform()
        self.idle()

    def screenshot(self, path, above=None):
        """Writes a PNG of the window, or of what is above an element."""
        options = {"format": "png"}
        if above:
            bottom = self.js("document.querySelector(arguments[0]).getBoundingClientRect().top", above)
            options["clip"] = {"x": 0, "y": 0, "width": self.size[0], "height": int(bottom), "scale": 1}
        path.write_bytes(base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]))

    def faults(self):
        """Returns what the console says and what the policy forbade."""
        console = [f"{line['level']} {line['message']}" for line in self.driver.get_log("browser")]
        # About how the tests themselves read pixels.
        return [line for line in console if "willReadFrequently" not in line] + self.js("window.violations || []")
