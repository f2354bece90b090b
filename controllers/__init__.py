"""Controllers, one a file, found by entry points of group rtmms.controllers; template.py is the start of a new one.

They use the public interface of rtmms alone, as a third party's do. Import name: rtmms_controllers.
"""
