"""Forces and motion of the manta's parts: chains of a fin sixteen abreast, rods and support, body.
Nothing of time: a kernel sees one state."""
