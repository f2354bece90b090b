"""ZeroMQ's protocol on plain streams, without libzmq and without threads: a Messages for each use of a socket.

zmtp.py knows bytes alone; everything that is read or written goes through the one Connection."""
