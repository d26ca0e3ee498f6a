"""How many files the server may have open: a connection is one."""

try:
    import resource
except ImportError:  # Windows, which has no such limit
    resource = None  # type: ignore[assignment]


def allow_files(n: int) -> None:
    """Raise the process's own limit if need be: macOS has 256.

    RAISES (OSError): if the system does not let it.
    """
    if resource is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= n:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n, hard))
    except (ValueError, OSError):
        raise OSError(f"{n} open files are needed, at most {hard} may be") from None
