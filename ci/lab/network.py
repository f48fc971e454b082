"""What joins several guests: a cable between two, a switch between more. Both are sockets of the lab's own; no port is opened."""

import collections
import os
import selectors
import socket

MOST_FRAMES_WAITING = 4096  # for one guest; more are lost, as in any switch
FRAME_BYTES = 65536 + 64  # the largest MTU, and its header
FRAMES_PER_TURN = 64
MOST_ADDRESSES = 1024  # remembered; frames to others go to all


class Switch:
    """Hands frames between ports by the address that they were last seen from; to all others when it is not known.

    A port is a datagram socket, a frame a datagram. Thread rule: everything runs within the selector's owner.
    """

    def __init__(self, selector, ports):
        self.selector = selector
        self.ports = ports
        self.places = {}  # port by hardware address
        self.waiting = {port: collections.deque(maxlen=MOST_FRAMES_WAITING) for port in ports}
        for port in ports:
            port.setblocking(False)
            selector.register(port, selectors.EVENT_READ, lambda mask, port=port: self.turn(port, mask))

    def turn(self, port, mask):
        if mask & selectors.EVENT_WRITE:
            self.flush(port)
        if mask & selectors.EVENT_READ:
            for _ in range(FRAMES_PER_TURN):
                try:
                    frame = port.recv(FRAME_BYTES)
                except BlockingIOError:
                    return
                except OSError:  # its guest is no more
                    frame = b""
                if not frame:
                    self.leave(port)
                    return
                self.forward(port, frame)

    def forward(self, source, frame):
        to, sender = frame[:6], frame[6:12]
        if sender in self.places or len(self.places) < MOST_ADDRESSES:
            self.places[sender] = source
        place = self.places.get(to)
        for port in self.ports if place is None else (place,):
            if port is not source:
                self.waiting[port].append(frame)
                self.flush(port)

    def flush(self, port):
        queue = self.waiting[port]
        while queue:
            try:
                port.send(queue[0])
            except BlockingIOError:
                break
            except OSError:  # nobody is there: the frame is lost
                pass
            queue.popleft()
        if port in self.ports:
            self.watch(port, selectors.EVENT_READ | (selectors.EVENT_WRITE if queue else 0))

    def watch(self, port, events):
        key = self.selector.get_key(port)
        if key.events != events:
            self.selector.modify(port, events, key.data)

    def leave(self, port):
        self.selector.unregister(port)
        self.ports.remove(port)
        self.places = {address: place for address, place in self.places.items() if place is not port}
        self.waiting.pop(port).clear()
        port.close()

    def close(self):
        for port in list(self.ports):
            self.leave(port)


class Network:
    """The guests' ends of what joins them. Owns the ends until `hand_over`, and the switch.

    `outside`: the descriptor of a datagram socket of somebody else's network, for one guest; stays the caller's."""

    def __init__(self, selector, hosts, outside=None):
        self.ends = [None]
        self.switch = None
        if outside is not None:
            self.ends = [socket.socket(fileno=os.dup(outside))]
        elif hosts == 2:
            self.ends = list(socket.socketpair())  # a stream, which QEMU cuts into frames: no switch to pay
        elif hosts > 2:
            pairs = [socket.socketpair(type=socket.SOCK_DGRAM) for _ in range(hosts)]
            self.ends = [theirs for _, theirs in pairs]
            self.switch = Switch(selector, [ours for ours, _ in pairs])

    def hand_over(self):
        """The guests have their ends: with a guest, its end goes."""
        for end in self.ends:
            if end is not None:
                end.close()
        self.ends = []

    def close(self):
        self.hand_over()
        if self.switch is not None:
            self.switch.close()
