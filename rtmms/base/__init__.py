"""What every room uses: errors, memory, kernels and their cache, spatial algebra, files, trust."""
