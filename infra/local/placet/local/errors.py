"""What can go wrong before there is anything to run on.

BackingError        a backing service cannot be had
└── NotThisWay      one way of getting it is not open here; `auto` goes on to the next
"""


class BackingError(Exception):
    """A backing service cannot be had. The message says which command or variable mends it."""


class NotThisWay(BackingError):
    """This way of getting the service is not open on this machine. The message says why."""
