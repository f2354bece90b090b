"""The exchange as compiled code: system calls by name, messages of a known layout, a whole step in one call. Addresses
and whole numbers only; what is unusual is handed over to Python as it came."""
