"""A run of one command in the guests: hands output on, lets guests meet, judges how each ended.

Thread rule: one thread, one selector; whoever adds to the selector gives a function of the event mask as data.
"""

import selectors
import sys
import time

from lab import errors
from lab.output import Console, Stream

SECONDS_TO_COME_UP = 300  # some 4 on a free core; a minute and more where ten others want it
SECONDS_AFTER_FAILURE = 10  # for the other guests' commands to notice
MOST_CONTROL_BYTES = 4096  # without a line's end: malformed


class Host:
    """What the session knows of a guest."""

    def __init__(self, guest, prefix, stdout, stderr):
        self.guest = guest
        self.console = Console()
        self.stdout = Stream(stdout, prefix)
        self.stderr = Stream(stderr, prefix)
        self.control = b""
        self.open = set(guest.channels)
        self.came_up = False
        self.waits = False
        self.killed = False
        self.status = None

    @property
    def rank(self):
        return self.guest.rank

    @property
    def ended(self):
        return not self.open or self.killed


class Session:
    def __init__(self, selector, guests, timeout, stdout=1, stderr=2):
        self.selector = selector
        self.stderr = stderr
        self.timeout = timeout
        self.began = time.monotonic()
        self.came_up_after = None
        self.failed_at = None
        several = len(guests) > 1
        self.hosts = [Host(g, b"[%d] " % g.rank if several else b"", stdout, stderr) for g in guests]
        for host in self.hosts:
            for name, channel in host.guest.channels.items():
                selector.register(channel, selectors.EVENT_READ, lambda mask, h=host, n=name: self.read(h, n))

    def run(self):
        """Until all guests ended or time is over; the exit status of the run."""
        while not all(host.ended for host in self.hosts):
            deadline, why, code = self.next_deadline()
            left = deadline - time.monotonic()
            if left <= 0:
                self.give_up(why)
                return code
            for key, mask in self.selector.select(left):
                key.data(mask)
        return self.judge()

    def next_deadline(self):
        """When, why, and with what exit code the run is ended, unless something happens before."""
        deadlines = [(self.began + self.timeout, f"not ended after {self.timeout:g} s (--timeout)", errors.TIMED_OUT)]
        if self.came_up_after is None:
            why = f"not all guests came up within {SECONDS_TO_COME_UP} s"
            deadlines.append((self.began + SECONDS_TO_COME_UP, why, errors.NOT_RUN))
        if self.failed_at is not None:
            why = f"a guest failed, and others did not end within {SECONDS_AFTER_FAILURE} s"
            deadlines.append((self.failed_at + SECONDS_AFTER_FAILURE, why, self.first_status()))
        return min(deadlines)

    # --- What guests say ---

    def read(self, host, name):
        if name not in host.open:
            return  # ended by what was read before, in the same turn
        try:
            data = host.guest.channels[name].recv(65536)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        if not data:
            self.close(host, name)
        elif name == "control":
            self.hear(host, data)
        else:
            {"console": host.console, "stdout": host.stdout, "stderr": host.stderr}[name].feed(data)

    def close(self, host, name):
        host.open.remove(name)
        self.selector.unregister(host.guest.channels[name])
        if host.open:
            return
        host.guest.kill()
        host.stdout.end()
        host.stderr.end()
        if host.status != 0 and not host.killed and self.failed_at is None:
            self.failed_at = time.monotonic()
        self.let_meet()

    def hear(self, host, data):
        *lines, host.control = (host.control + data).split(b"\n")
        if len(host.control) > MOST_CONTROL_BYTES:
            host.control = b""
        for line in lines:
            match line.split():
                case [b"barrier"]:
                    host.came_up = host.waits = True
                    self.let_meet()
                case [b"kill", rank] if rank.isdigit():
                    self.kill(int(rank))
                    self.go(host)
                case [b"status", status] if status.isdigit():
                    host.status = int(status)
                case _:
                    self.say(f"guest {host.rank} said {line[:80]!r}, which means nothing")

    def let_meet(self):
        if self.came_up_after is None and all(host.came_up for host in self.hosts):
            self.came_up_after = time.monotonic() - self.began
        running = [host for host in self.hosts if not host.ended and host.status is None]
        if running and all(host.waits for host in running):
            for host in running:
                host.waits = False
                self.go(host)

    def go(self, host):
        try:
            host.guest.channels["control"].send(b"go\n")
        except OSError:  # it ends, which is seen when its channels are read
            pass

    def kill(self, rank):
        for host in self.hosts:
            if host.rank == rank and not host.ended:
                self.say(f"guest {rank} is no more, as asked for")
                host.killed = True
                host.guest.kill()

    # --- The end ---

    def first_status(self):
        """Of the guests that ended, by rank."""
        statuses = [errors.NOT_RUN if host.status is None else host.status
                    for host in self.hosts if host.ended and not host.killed]
        return next((status for status in statuses if status != 0), 0)

    def judge(self):
        for host in self.hosts:
            if host.status is None and not host.killed:
                self.say(f"guest {host.rank} ended without a status: {host.console.trouble() or 'its console says why'}")
                self.show_console(host)
            for complaint in host.console.complaints():
                self.say(f"the kernel of guest {host.rank} complained: {complaint}")
        return self.first_status()

    def give_up(self, why):
        self.say(why)
        for host in self.hosts:
            if not host.ended:
                host.stdout.end()
                host.stderr.end()
                self.show_console(host)

    def show_console(self, host):
        lines = host.console.last_lines()
        self.say(f"the console of guest {host.rank}, from its end:" if lines else f"guest {host.rank} said nothing on its console")
        for line in lines:
            print(f"  | {line}", file=sys.stderr)
        sys.stderr.flush()

    def say(self, text):
        print(f"ci/softroce: {text}", file=sys.stderr, flush=True)

    def seconds(self):
        return time.monotonic() - self.began
