"""Endpoints, socket files, key files and the session's token.

Plants and peers find each other by them. The package neither reads nor writes messages.
"""
