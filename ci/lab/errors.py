"""How the lab ends when it cannot give the command's own exit status."""

NOT_RUN = 125  # the lab's own trouble: no kernel, the guest did not come up or died
TIMED_OUT = 124  # as timeout(1)
USAGE = 2


class LabError(Exception):
    """Trouble from outside; the text is one line that says what to do next."""


class Interrupted(Exception):
    """A signal asked the lab to end."""

    def __init__(self, signal_number):
        super().__init__(f"ended by signal {signal_number}")
        self.exit_code = 128 + signal_number
