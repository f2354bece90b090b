"""Modules that all other packages use: errors, memory, kernels and their cache, spatial algebra, files, trust."""
