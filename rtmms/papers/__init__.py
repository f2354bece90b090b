"""Reproductions of papers, one folder a paper: what it claims (claims.py), runs of ours, and main of reproduce.py,
which an entry point names (group rtmms.papers). Nothing else imports them."""
