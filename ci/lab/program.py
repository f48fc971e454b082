"""ci/softroce from its arguments to its exit status."""

import os
import selectors
import signal
import sys

from lab import accelerator, cache, errors, kernel as kernels, machine, options as lab_options, siw
from lab.network import Network
from lab.session import Session


def say(text):
    print(f"ci/softroce: {text}", file=sys.stderr, flush=True)


def prepare(folder):
    """Fetches and builds what is missing; the kernel that runs take from now on."""
    with cache.locked(folder):
        with cache.workshop(folder) as work:
            before = {one.folder for one in kernels.cached(folder)}
            kernel = kernels.fetch(folder, work)
            if kernel.folder not in before:
                say(f"fetched Debian's kernel {kernel.version}")
            if not siw.is_built(kernel):
                say("builds SoftiWARP from Debian's kernel source (half a minute)")
                siw.build(kernel, work)
    return kernel


def kernel_for(options, folder):
    kernel = kernels.newest(folder)
    if kernel is None or options.device == "siw" and not siw.is_built(kernel):
        kernel = prepare(folder)
    return kernel


def start_all(options, kernel, accel, network, guests):
    for rank in range(options.hosts):
        guests.append(machine.start(kernel, accel, options, rank, network.ends[rank]))
    network.hand_over()


def run(options):
    folder = cache.folder()
    machine.find_qemu()
    kernel = kernel_for(options, folder)
    accel = accelerator.choose(options.accel, kernel, folder)
    if options.out:
        os.makedirs(options.out, exist_ok=True)
    guests = []
    with selectors.DefaultSelector() as selector:
        network = Network(selector, options.hosts, options.network[0] if options.network else None)
        try:
            start_all(options, kernel, accel, network, guests)
            session = Session(selector, guests, options.timeout)
            code = session.run()
        finally:
            for guest in guests:
                guest.close()
            network.close()
    up = "not up" if session.came_up_after is None else f"up after {session.came_up_after:.1f} s"
    say(f"{options.hosts} x {options.device}, kernel {kernel.version}, {accel}: {up}, ended after {session.seconds():.1f} s, status {code}")
    return code


def end_by_signal(number, _frame):
    # The first one is being obeyed.
    for other in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
    raise errors.Interrupted(number)


def main(arguments):
    options = lab_options.parse(arguments)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, end_by_signal)
    try:
        if options.prepare:
            folder = cache.folder()
            accelerator.choose("auto", prepare(folder), folder)
            return 0
        return run(options)
    except errors.LabError as error:
        say(error)
        return errors.NOT_RUN
    except errors.Interrupted as interrupted:
        return interrupted.exit_code
    except BrokenPipeError:  # nobody reads our output any more
        return 128 + signal.SIGPIPE
