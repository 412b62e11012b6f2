"""The controller's process: the composition root. It owns the socket, the clock, the threads and the wiring."""
