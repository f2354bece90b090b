"""How peers drive a plant over ZeroMQ: see docs/protocol.md. The two sides, plant and peer, never import each other."""
