"""The state machine: events in, effects out. It reads no clock, socket, file or database."""
