"""Boyer and Porez 2015, multibody system dynamics for bio-inspired locomotion: what the paper says and what we get.

`rtmms reproduce boyer2015` runs reproduce.py; each of its parts is a file with CLAIMS, numbers() and draw().
"""
