"""Controllers that come with rtmms: clients of the wire like anyone's, found by entry points `rtmms.controllers`."""
