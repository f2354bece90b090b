"""Boyer, Porez, Morsli and Morel 2017, soft appendages: the dead fish and modal wings, what the paper says and what we get.

`rtmms reproduce boyer2017` runs reproduce.py; its fish and its wings are parts that boyer2015's section 9 shares.
"""  # noqa: E501
