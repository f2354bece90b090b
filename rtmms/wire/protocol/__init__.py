"""Messages and their meaning: messages, checks, states and the one port of transport.

No socket in here, and nothing that only a plant needs."""
